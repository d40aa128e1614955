import pytest

from truestep.events import (
    LearningRateRead,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    RunEnded,
    SchedulerBuilt,
    SchedulerStepped,
    Site,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.learning_rate_dead import LearningRateDead
from truestep.testing import judge

MADE, LINE = Site("train.py", 10, 12), Site("train.py", 11, 9)
MET = [ParameterMet(parameter=1, name="net.weight"), ParameterMet(parameter=2, name="old.weight", trainable=False)]
ADAM = OptimizerBuilt(optimizer=1, name="optimizer", kind="Adam", lr=1e-3, parameters=(1, 2), site=MADE)
WARMUP = SchedulerBuilt(scheduler=1, name="warmup", kind="LambdaLR", optimizer=1, at_zero=True, site=LINE)
STEP = OptimizerStepped(optimizer=1, fresh=1, observed=1)
STILL = LearningRateRead(optimizer=1, rates=(0.0,))
MOVING = LearningRateRead(optimizer=1, rates=(1e-3,))
UP = SchedulerStepped(scheduler=1, optimizer_steps=1)
ZERO = SchedulerStepped(scheduler=1, optimizer_steps=1, at_zero=True)
END = RunEnded(how="finished")


def test_a_warm_up_that_is_never_stepped_is_found_where_it_is_made():
    (finding,) = judge(LearningRateDead, [*MET, ADAM, WARMUP, *[STEP] * 20, STILL, END])
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "`warmup` held the learning rate at 0 for the whole run"
    assert finding.related[0].label == "requests 0.001"
    assert finding.help == "call `warmup.step()` after every `optimizer.step()`"
    assert finding.cost == "the learning rate was 0 whenever it was read: 1 times in 20 optimizer steps"
    assert (finding.seen.count, finding.seen.total) == (20, 20)


def test_factors_of_zero_are_distinguished():
    (finding,) = judge(LearningRateDead, [*MET, ADAM, WARMUP, *[STEP, ZERO] * 20, STILL, END])
    assert finding.help == "give `warmup` factors above 0, or step it more often"


@pytest.mark.parametrize(
    "events",
    [
        [*MET, ADAM, WARMUP, *[STEP] * 5, UP, *[STEP] * 15, STILL, END],
        [*MET, ADAM, WARMUP, *[STEP] * 20, STILL, MOVING, END],
        [*MET, ADAM, WARMUP, *[STEP] * 20, END],
        [*MET, ADAM, WARMUP, *[STEP] * 20, STILL, RunEnded(how="interrupted")],
        [*MET, ADAM, WARMUP, *[STEP] * 5, STILL, END],
        [*MET, ADAM, STEP, WARMUP, *[STEP] * 20, STILL, END],
        [*MET, ADAM, WARMUP, *[STEP, OptimizerStepped(optimizer=2, fresh=1)] * 20, STILL, END],
        [*MET, ADAM, WARMUP, SchedulerBuilt(scheduler=2, optimizer=1), *[STEP] * 20, STILL, END],
    ],
    ids=[
        "rises", "raised by hand", "not seen", "interrupted", "a few steps", "built later",
        "waits for another optimizer", "another schedule",
    ],
)  # fmt: skip
def test_other_runs_are_quiet(events):
    assert judge(LearningRateDead, events) == []


NOTHING = OptimizerBuilt(optimizer=1, name="optimizer", kind="Adam", lr=0.0, parameters=(1, 2), site=MADE)
RPROP = OptimizerBuilt(optimizer=1, name="optimizer", kind="Rprop", lr=0.0, parameters=(1, 2), site=MADE)


def test_a_rate_of_0_that_the_script_passed_is_found():
    (finding,) = judge(LearningRateDead, [*MET, NOTHING, STILL, *[STEP] * 20, STILL, END])
    assert (finding.primary.site, finding.confidence) == (MADE, Confidence.HIGH)
    assert finding.message == "`optimizer` has a learning rate of 0: its steps changed nothing"
    assert finding.cost == "its 2 parameters kept their values in 20 steps"


OTHER = OptimizerBuilt(optimizer=2, lr=0.1, parameters=(1, 2), site=MADE)


@pytest.mark.parametrize(
    "events",
    [
        [*MET, NOTHING, STILL, *[STEP] * 20, MOVING, END],
        [*MET, RPROP, STILL, *[STEP] * 20, STILL, END],
        [*MET, NOTHING, STILL, *[STEP] * 20, STILL, OTHER, END],
        [*MET, NOTHING, STILL, *[STEP] * 5, STILL, END],
        [*MET, NOTHING, *[STEP] * 20, END],
    ],
    ids=["rises at the end", "another optimizer", "a sweep", "a few steps", "not read"],
)
def test_other_rates_of_0_are_quiet(events):
    assert judge(LearningRateDead, events) == []


def test_without_a_learning_rate_it_is_not_observed():
    verdict = LearningRateDead().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no learning rate that is a number")


def test_a_schedule_that_begins_at_zero_for_many_updates():
    events = [*MET, ADAM, WARMUP, STILL, *[STEP] * 12, STILL, *[STEP] * 3, UP, MOVING, *[STEP] * 20, MOVING, STEP, END]
    (finding,) = judge(LearningRateDead, events)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "`warmup` held the learning rate at 0 for the first 13 updates"
    assert finding.cost == "these updates changed nothing: 36% of the run or more"
    other = OptimizerStepped(optimizer=2, fresh=1, observed=1)
    assert judge(LearningRateDead, [*events[:-1], other, END]) == []
