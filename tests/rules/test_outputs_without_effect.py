"""Columns and samples of results without a gradient, in all passes that are read."""

import pytest

from truestep.events import (
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ResultDifferentiated,
    RunEnded,
    Site,
    StateLoaded,
)
from truestep.findings import Confidence
from truestep.rules.outputs_without_effect import OutputsWithoutEffect
from truestep.testing import judge

CALL, PART, LOSS = Site("train.py", 20, 14), Site("train.py", 21, 27), Site("train.py", 23, 8)
MET = [
    ModelMet(model=1, name="net", parameters=(1,)),
    ParameterMet(parameter=1, name="weight", shape=(4, 3), model=1),
    OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1,)),
]
STEP = OptimizerStepped(optimizer=1, observed=1, fresh=1)
PLACES = {"model": 1, "site": CALL, "loss": LOSS}


def passed(**more):
    facts = {"columns": 4, "dead": ((1, 4),), "own": True, "asked": True, "samples": 32, "place": PART}
    return ResultDifferentiated(**PLACES, **(facts | more))


def half(**more):
    facts = {"columns": 4, "samples": 32, "unused": ((16, 32),), "place": PART}
    return ResultDifferentiated(**PLACES, **(facts | more))


def after(*events, first=()):
    steps = [event for one in events for event in (one, *[STEP] * 6)]
    return judge(OutputsWithoutEffect, [*MET, *first, *steps])


def test_columns_are_found_at_the_expression_that_takes_a_part():
    (finding,) = after(*[passed()] * 4)
    assert finding.primary.site == PART
    assert "1 of 4 columns" in finding.message
    assert finding.primary.label == "columns 1 to 3 never get a gradient"
    assert [mark.site for mark in finding.related] == [CALL, LOSS]
    assert (finding.seen.count, finding.seen.total) == (4, 4)


def test_columns_that_no_variable_has_values_for_can_be_spare():
    (finding,) = after(*[passed(asked=False)] * 4)
    assert finding.confidence is Confidence.LOW


@pytest.mark.parametrize(("later", "found"), [(4, 1), (40, 0)])
def test_reading_that_was_given_up_early_says_nothing_about_later_stages(later, found):
    read = [event for one in [half()] * 4 for event in (one, *[STEP] * 6)]
    ended = RunEnded(how="finished", given_up="close reading given up at step 20")
    assert len(judge(OutputsWithoutEffect, [*MET, *read, *[STEP] * later, ended])) == found


def test_samples_are_found_at_the_call_without_such_an_expression():
    (finding,) = after(*[half(place=None)] * 4)
    assert finding.primary.site == CALL
    assert "16 of the 32 samples" in finding.message


def test_a_smaller_last_batch_does_not_count():
    (finding,) = after(half(), half(), half(), half(samples=10, unused=()), half())
    assert "16 of the 32" in finding.message


@pytest.mark.parametrize(
    "events",
    [
        [passed()] * 3,
        [passed(own=False)] * 4,
        [passed(dead=((1, 2),), columns=2)] * 4,
        [*[passed()] * 4, passed(dead=())],
        [*[passed()] * 4, passed(dead=((0, 3),))],
        [*[half()] * 4, half(unused=())],
        [*[half()] * 2, *[half(unused=((0, 16),))] * 2],
    ],
    ids=["few", "shared weights", "one of two", "used later", "others later", "all later", "other samples"],
)
def test_healthy_results_are_quiet(events):
    assert not after(*events)


def test_loaded_weights_are_quiet():
    assert not after(*[passed()] * 4, first=[StateLoaded(site=CALL, parameters=(1,))])
