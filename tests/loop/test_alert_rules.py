"""Alarming values give one alert; those of healthy training give none."""

import math

import numpy as np
import pytest

from truestep.loop.log.alert_rules import Bound, NormSpike, NotFiniteValue, Rising, Spike

STEPS = 3000
T = np.arange(STEPS)


def told(rule, values):
    """(place, text) of everything a rule says about a series."""
    said = [(place, rule.check(float(value))) for place, value in enumerate(values)]
    return [(place, text) for place, text in said if text]


def autoregressive(noise, kept):
    values = np.zeros(len(noise))
    for place in range(1, len(noise)):
        values[place] = kept * values[place - 1] + noise[place]
    return values


def falling(rng, noise=0.1):
    return (2.3 * np.exp(-T / 500) + 0.4) * (1 + noise * rng.standard_normal(STEPS))


HEALTHY = {
    "falls": falling,
    "small, noisy batches": lambda rng: falling(rng, 0) * np.exp(0.8 * rng.standard_normal(STEPS)),
    "heavy tails": lambda rng: 2 + 3 * np.exp(-T / 500) + 0.2 * rng.standard_t(3, STEPS),
    "a few hard batches": lambda rng: falling(rng) * np.where(rng.random(STEPS) < 0.02, 8, 1),
    "two tasks in turns": lambda rng: falling(rng) * np.where(T % 2, 30, 1),
    "hard batches at the end of each epoch": lambda rng: falling(rng) * np.where(T % 500 < 2, 8, 1),
    "learning rate in steps": lambda rng: (
        np.select([T < 1000, T < 2000], [1.0, 0.3], 0.1) * (1 + 0.15 * rng.standard_normal(STEPS))
        + 2 * np.exp(-T / 100)
    ),
    "rises in warm-up": lambda rng: falling(rng) + np.exp(-(((T - 250) / 80) ** 2)),
    "down to nothing": lambda rng: 2.3 * np.exp(-T / 150) * np.exp(0.5 * rng.standard_normal(STEPS)) + 1e-8,
    "full batches of Adam": lambda rng: 2.3 * np.exp(-T / 300) + 1e-6 + np.where(T % 700 > 690, 0.02, 0) * (T > 2000),
    "constant": lambda rng: np.full(STEPS, 0.7),
    "in waves": lambda rng: 1 + 2 * np.exp(-T / 500) + 0.5 * np.sin(T / 40) + 0.1 * rng.standard_normal(STEPS),
    "a random walk": lambda rng: 10 + np.cumsum(0.1 * rng.standard_normal(STEPS)),
    "memorised epoch by epoch": lambda rng: 2.0 * 0.8 ** (T // 300) * (1 + 0.1 * rng.standard_normal(STEPS)),
    "both signs": lambda rng: rng.standard_normal(STEPS) * np.exp(autoregressive(rng.standard_normal(STEPS), 0.99) / 7),
    "two players": lambda rng: 1 + np.exp(autoregressive(rng.standard_normal(STEPS), 0.995) / 10),
}


@pytest.mark.parametrize("shape", HEALTHY)
@pytest.mark.parametrize(
    "rule", [lambda: Spike(fallen=True), NormSpike, NotFiniteValue], ids=["spike", "norm", "finite"]
)
def test_healthy_series_are_quiet(shape, rule):
    for seed in range(3):
        assert told(rule(), HEALTHY[shape](np.random.default_rng(seed))) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_jumps_and_stays_is_reported_within_five_values(seed):
    values = falling(np.random.default_rng(seed))
    values[2000:2100] *= 4
    ((place, text),) = told(Spike(fallen=True), values)
    assert 2002 <= place < 2005
    assert text.startswith("jumped to ")
    assert "it was 0.4" in text


def test_one_bad_batch_is_no_spike():
    values = falling(np.random.default_rng(0))
    values[2000] = 100
    assert told(Spike(fallen=True), values) == []


def test_a_loss_that_never_fell_has_nothing_to_lose():
    values = 1 + 0.05 * np.random.default_rng(0).standard_normal(STEPS)
    values[2000:] += 5
    assert told(Spike(fallen=True), values) == []
    assert len(told(Spike(), values)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_one_norm_far_above_the_usual_is_reported_once(seed):
    rng = np.random.default_rng(seed)
    values = np.exp(0.3 * rng.standard_normal(STEPS)) * (5 * np.exp(-T / 200) + 0.5)
    values[[2000, 2600]] = 500
    ((place, text),) = told(NormSpike(), values)
    assert place == 2000
    assert text.startswith("is 500, ")


def test_a_jump_of_the_learning_rate_explains_a_spike():
    values = falling(np.random.default_rng(0))
    values[2000:2050] *= 6
    rule = Spike(fallen=True)
    assert told(rule, values[:2000]) == []
    rule.pause()
    assert told(rule, values[2000:]) == []


def test_nan_is_reported_once_and_again_after_it_was_away():
    values = [1.0] * 5 + [math.nan] * 50 + [1.0] * 120 + [math.inf]
    assert told(NotFiniteValue(), values) == [(5, "is nan"), (175, "is inf")]


@pytest.mark.parametrize("rule", [Spike(fallen=True), NormSpike(), Rising(5)])
def test_nan_does_not_blind_the_other_rules(rule):
    assert told(rule, [math.nan, math.inf, -math.inf] * 100) == []


def test_a_loss_that_diverges_is_reported_at_its_fifth_rise():
    values = [0.9, 0.6, 0.45, 0.4, 0.41, 0.44, 0.48, 0.53, 0.59, 0.66]
    assert told(Rising(5), values) == [(8, "rose 5 times in a row, from 0.4 to 0.59")]


def test_an_accuracy_gets_worse_by_falling():
    assert told(Rising(3, falling=True), [0.5, 0.9, 0.8, 0.7, 0.6]) == [(4, "fell 3 times in a row, from 0.9 to 0.6")]


def test_a_late_overfit_is_reported_once():
    epochs = np.arange(40)
    values = np.where(epochs < 20, 0.4 + 2 * np.exp(-epochs / 5), 0.45 + 0.02 * (epochs - 20))
    values = values + 0.005 * np.random.default_rng(0).standard_normal(40)
    ((place, _),) = told(Rising(5), values)
    assert 22 <= place <= 30


def test_noise_on_a_plateau_seldom_rises_five_times():
    rng = np.random.default_rng(0)
    runs = [1 + 0.1 * rng.standard_normal(50) for _ in range(300)]
    assert sum(bool(told(Rising(5), values)) for values in runs) <= 6


def test_a_bound_is_reported_when_it_is_passed():
    assert told(Bound(10), [1, 11, 12, 3, 20]) == [(1, "is 11, above 10"), (4, "is 20, above 10")]
    assert told(Bound(0.5, below=True), [0.6, 0.4]) == [(1, "is 0.4, below 0.5")]


@pytest.mark.parametrize("make", [NotFiniteValue, Spike, NormSpike, lambda: Rising(4), lambda: Bound(1.4)])
@pytest.mark.parametrize("cut", [3, 150, 777])
def test_a_rule_goes_on_where_it_was(make, cut):
    values = falling(np.random.default_rng(1), 0.3)
    values[[500, 800]] = math.nan
    values[900:950] *= 9
    whole, first, second = make(), make(), make()
    expected = [whole.check(float(value)) for value in values]
    before = [first.check(float(value)) for value in values[:cut]]
    second.load_state_dict(first.state_dict())
    assert before + [second.check(float(value)) for value in values[cut:]] == expected
    assert second.state_dict() == whole.state_dict()
