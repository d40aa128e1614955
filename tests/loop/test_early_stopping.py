"""Early stopping: counted by logged values, not by questions."""

import math

import pytest

from truestep.errors import BadSettings, MetricMissing
from truestep.loop.log.early_stopping import EarlyStopping


def answers(values, **options):
    stalls = EarlyStopping()
    stalls.stalled("v", **options)
    said = []
    for value in values:
        stalls.logged({"v": value})
        said.append(stalls.stalled("v", **options))
    return said


def test_it_is_time_when_patience_is_used_up():
    assert answers([1.0, 0.5, 0.6, 0.5, 0.7], patience=3) == [False, False, False, False, True]


def test_a_better_value_begins_again():
    assert answers([1.0, 1.1, 0.9, 1.0, 1.0], patience=2) == [False, False, False, False, True]


def test_more_than_min_delta_is_better():
    assert answers([1.0, 0.95, 0.9], patience=2, min_delta=0.1) == [False, False, True]
    assert answers([1.0, 0.95, 0.89], patience=2, min_delta=0.1) == [False, False, False]


def test_an_accuracy_is_better_when_it_is_larger():
    assert answers([0.1, 0.5, 0.4, 0.3], patience=2, mode="max") == [False, False, False, True]


def test_nan_is_no_improvement():
    assert answers([math.nan, math.nan], patience=2) == [False, True]
    assert answers([0.5, math.nan, math.nan], patience=2) == [False, False, True]


def test_to_ask_often_changes_nothing():
    stalls = EarlyStopping()
    for value in (1.0, 2.0):
        stalls.logged({"v": value})
        assert not any(stalls.stalled("v", patience=2, last=value) for _ in range(10))


def test_two_questions_about_one_value_do_not_meet():
    stalls = EarlyStopping()
    for value in (1.0, 0.99, 0.98):
        stalls.stalled("v", patience=2, min_delta=0.1)
        stalls.stalled("v", patience=2)
        stalls.logged({"v": value})
    assert stalls.stalled("v", patience=2, min_delta=0.1)
    assert not stalls.stalled("v", patience=2)


def test_what_is_asked_for_in_vain_is_an_error():
    stalls = EarlyStopping()
    for epoch in (0, 0, 0, 1):
        assert not stalls.stalled("val_los", patience=2, epoch=epoch)
    with pytest.raises(MetricMissing, match='"val_los" was never logged'):
        stalls.stalled("val_los", patience=2, epoch=2)


@pytest.mark.parametrize(
    "options", [{"patience": 0}, {"patience": 1.5}, {"patience": 1, "mode": "up"}, {"patience": 1, "min_delta": -1}]
)
def test_what_means_nothing_is_refused(options):
    with pytest.raises(BadSettings):
        EarlyStopping().stalled("v", **options)


def test_counts_go_on_where_they_were():
    first, second = EarlyStopping(), EarlyStopping()
    first.stalled("v", patience=3)
    for value in (1.0, 2.0):
        first.logged({"v": value})
    second.load_state_dict(first.state_dict())
    second.logged({"v": 2.0})
    assert not second.stalled("v", patience=3)
    second.logged({"v": 2.0})
    assert second.stalled("v", patience=3)
