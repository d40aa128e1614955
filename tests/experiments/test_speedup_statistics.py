"""Verdicts on ratios of times: nothing inside the noise is a gain."""

import math
import random

import pytest

from truestep.experiments.figures.speedup_statistics import SpeedVerdict, deviation, interval, judge


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([[1.3, 1.2, 1.25, 1.3, 1.27]], SpeedVerdict.GAIN),
        ([[1.3] * 8, [1.2] * 8], SpeedVerdict.GAIN),
        ([[1.3] * 8, [1.02] * 8], SpeedVerdict.UNSURE),
        ([[1.3] * 8, [0.8] * 8], SpeedVerdict.UNSURE),
        ([[1.02, 1.02, 1.02, 1.02, 1.02]], SpeedVerdict.EQUAL),
        ([[1.0, 1.01, 0.99, 1.0, 1.02]], SpeedVerdict.EQUAL),
        ([[0.5, 1.01, 0.9, 1.0, 1.02]], SpeedVerdict.EQUAL),
        ([[0.5, 2.0, 0.9, 1.0, 1.5]], SpeedVerdict.UNSURE),
        ([[0.5, 0.6, 0.7, 0.6, 0.5]], SpeedVerdict.SLOWER),
        ([[5.0, 5.0, 5.0, 5.0]], SpeedVerdict.UNSURE),
        ([[]], SpeedVerdict.UNSURE),
        ([], SpeedVerdict.UNSURE),
        ([[math.inf] * 8], SpeedVerdict.UNSURE),
    ],
)
def test_a_gain_is_one_where_every_pair_of_processes_says_so(pairs, says):
    assert judge(pairs).says is says


def test_where_the_same_script_differs_from_itself_by_more_a_gain_must_be_more():
    assert judge([[1.2] * 8]).says is SpeedVerdict.GAIN
    assert judge([[1.2] * 8], margin=0.25).says is SpeedVerdict.UNSURE


def test_one_turn_of_eight_may_be_disturbed_and_two_may_not():
    assert judge([[1.5] * 7 + [0.2]]).says is SpeedVerdict.GAIN
    assert judge([[1.5] * 6 + [0.2, 0.3]]).says is SpeedVerdict.UNSURE


@pytest.mark.parametrize(("count", "ends"), [(4, (0, math.inf)), (5, (0, 4)), (7, (0, 6)), (8, (1, 6)), (11, (2, 8))])
def test_an_interval_leaves_out_as_much_as_the_median_allows(count, ends):
    assert interval(list(range(count))) == ends


@pytest.mark.parametrize("turns", [5, 8])
def test_the_interval_holds_the_median_as_often_as_it_says_whatever_the_noise(turns):
    draw = random.Random(0)
    held = 0
    for _ in range(4000):
        low, high = interval([math.exp(draw.gauss(0, 0.3) + (draw.random() < 0.2) * 2 - 0.31) for _ in range(turns)])
        held += low <= MEDIAN <= high
    assert held / 4000 > 0.91


MEDIAN = sorted(
    math.exp(draw.gauss(0, 0.3) + (draw.random() < 0.2) * 2 - 0.31) for draw in [random.Random(1)] for _ in range(20001)
)[10000]


def test_pure_noise_is_hardly_ever_a_gain():
    draw = random.Random(2)
    pairs = ([[math.exp(draw.gauss(0, 0.15)) for _ in range(8)] for _ in range(2)] for _ in range(2000))
    gains = sum(judge(both).says is SpeedVerdict.GAIN for both in pairs)
    assert gains <= 6


def test_how_far_losses_lie_apart():
    assert deviation([2.0, 1.0], [2.0, 1.0]) == 0
    assert deviation([2.0, 2.0], [2.0, 2.4]) == pytest.approx(0.1)
    assert math.isnan(deviation([2.0, 1.0], [2.0]))
    assert math.isnan(deviation([], []))
    assert math.isnan(deviation([None], [None]))
    assert deviation([1.0, math.nan], [1.0, math.nan]) == 0
    assert deviation([1.0, 1.0], [1.0, math.nan]) == math.inf
