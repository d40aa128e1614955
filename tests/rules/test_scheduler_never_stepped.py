import pytest

from truestep.events import (
    BackwardEnded,
    LearningRateRead,
    LoaderMet,
    LoaderStarted,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    SchedulerBuilt,
    SchedulerStepped,
    Site,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.scheduler_never_stepped import SchedulerNeverStepped
from truestep.testing import judge

MADE, LINE = Site("train.py", 10, 12), Site("train.py", 11, 9)
ADAM = OptimizerBuilt(optimizer=1, name="optimizer", kind="Adam", lr=1e-3, parameters=(1, 2), site=MADE)
COSINE = SchedulerBuilt(scheduler=1, name="cosine", kind="CosineAnnealingLR", optimizer=1, called=False, site=LINE)
MAYBE = SchedulerBuilt(scheduler=1, name="cosine", kind="CosineAnnealingLR", optimizer=1, site=LINE)
SECOND = SchedulerBuilt(scheduler=2, name="warmup", kind="LinearLR", optimizer=1, called=False, site=LINE)
READ, LESS = LearningRateRead(optimizer=1, rates=(1e-3,)), LearningRateRead(optimizer=1, rates=(1e-4,))
STEPS = [BackwardEnded(loader=1), OptimizerStepped(optimizer=1, fresh=1, observed=1)] * 10
MET, PASS = LoaderMet(loader=1), LoaderStarted(loader=1)
END = RunEnded(how="finished")


def test_a_schedule_that_is_never_stepped_is_found_where_it_is_built():
    (finding,) = judge(SchedulerNeverStepped, [ADAM, COSINE, MET, PASS, READ, *STEPS, PASS, *STEPS, READ, END])
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.HIGH)
    assert finding.message == "`cosine` was never stepped, and the learning rate kept its first value"
    assert finding.cost == "the learning rate was 0.001 in all 20 steps"
    assert finding.related[0].site == MADE


@pytest.mark.parametrize(
    "events",
    [[MAYBE, MET, PASS, READ, *STEPS, PASS, *STEPS, END], [COSINE, MET, PASS, READ, *STEPS, *STEPS, END]],
    ids=["a call in the file", "one pass"],
)
def test_what_may_be_a_condition_has_low_confidence(events):
    (finding,) = judge(SchedulerNeverStepped, [ADAM, *events])
    assert finding.confidence is Confidence.LOW


@pytest.mark.parametrize(
    "events",
    [
        [COSINE, READ, *STEPS, SchedulerStepped(scheduler=1), *STEPS, END],
        [COSINE, SECOND, READ, *STEPS, SchedulerStepped(scheduler=1), *STEPS, END],
        [COSINE, READ, *STEPS, LESS, *STEPS, END],
        [COSINE, READ, *STEPS, END],
        [COSINE, READ, *STEPS, *STEPS, RunEnded(how="interrupted")],
        [COSINE, LearningRateRead(optimizer=1, rates=(0.0,)), *STEPS, *STEPS, END],
        [SchedulerBuilt(scheduler=1, kind="SWALR", optimizer=1, called=False), READ, *STEPS, *STEPS, END],
    ],
    ids=["stepped", "another schedule", "set by the script", "a few steps", "interrupted", "rate of 0", "starts late"],
)
def test_other_runs_are_quiet(events):
    assert judge(SchedulerNeverStepped, [ADAM, *events]) == []


def test_without_a_schedule_it_is_not_observed():
    verdict = SchedulerNeverStepped().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no scheduler")
