import pytest

from truestep.events import (
    BackwardEnded,
    ModelCalled,
    OptimizerBuilt,
    OptimizerStepped,
    SchedulerBuilt,
    SchedulerStepped,
    Site,
)
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.scheduler_stepped_twice import SchedulerSteppedTwice
from truestep.testing import judge

INNER, OUTER = Site("train.py", 20, 8, function="train"), Site("train.py", 40, 4)
MET = [OptimizerBuilt(optimizer=1, name="opt"), SchedulerBuilt(scheduler=1, name="sched", kind="StepLR", optimizer=1)]
TRAIN = [BackwardEnded(loader=1), OptimizerStepped(optimizer=1, fresh=2, observed=2)] * 2
EVALUATE = [ModelCalled(model=1, grad=False, tracked=False, training=False, loader=2)] * 2


def step(site, *, after=0, **facts):
    return SchedulerStepped(scheduler=1, site=site, optimizer_steps=after, **facts)


def test_two_lines_that_step_for_every_epoch_are_found_at_the_second():
    epoch = [*TRAIN, step(INNER, after=2), *EVALUATE, step(OUTER)]
    (finding,) = judge(SchedulerSteppedTwice, [*MET, *epoch * 4])
    assert (finding.primary.site, finding.related[0].site) == (OUTER, INNER)
    assert (finding.seen.count, finding.seen.total, finding.confidence) == (4, 8, Confidence.HIGH)
    assert "second time" in finding.message


def test_two_steps_for_every_batch_are_found():
    (finding,) = judge(SchedulerSteppedTwice, [*MET, *[*TRAIN[:2], step(INNER, after=1), step(OUTER)] * 5])
    assert (finding.primary.site, finding.seen.count) == (OUTER, 5)


def test_a_step_for_every_batch_of_the_evaluation_is_found():
    epoch = [*TRAIN, step(OUTER, after=2), *[EVALUATE[0], step(INNER)] * 3]
    (finding,) = judge(SchedulerSteppedTwice, [*MET, *epoch * 2])
    assert (finding.primary.site, finding.seen.count) == (INNER, 6)
    assert "evaluation" in finding.message


def test_one_line_for_training_and_evaluation_is_found_with_medium_confidence():
    epoch = [*TRAIN, step(INNER, after=2), *EVALUATE, step(INNER)]
    (finding,) = judge(SchedulerSteppedTwice, [*MET, *epoch * 3])
    assert (finding.confidence, finding.related) == (Confidence.MEDIUM, ())


def test_a_schedule_that_ends_with_the_run_has_low_confidence():
    met = [MET[0], SchedulerBuilt(scheduler=1, kind="CosineAnnealingLR", optimizer=1, horizon=8)]
    epoch = [*TRAIN, step(INNER, after=2), step(OUTER)]
    (finding,) = judge(SchedulerSteppedTwice, [*met, *epoch * 4])
    assert finding.confidence is Confidence.LOW


def test_a_plateau_that_gets_its_metric_at_two_lines_is_found():
    epoch = [*TRAIN, *EVALUATE, step(INNER, after=2, metric="float"), step(OUTER, metric="float")]
    (finding,) = judge(SchedulerSteppedTwice, [*MET, *epoch * 4])
    assert (finding.primary.site, finding.related[0].site, finding.seen.count) == (OUTER, INNER, 4)


@pytest.mark.parametrize(
    "healthy",
    [
        [*[step(OUTER, first=True)] * 5, *[*TRAIN, step(INNER, after=2), *EVALUATE] * 4],
        [*TRAIN, step(INNER, after=2), step(INNER), step(INNER), step(INNER)] * 4,
        [TRAIN[0], step(INNER), *TRAIN[:2], step(INNER, after=1)] * 4,
        [*TRAIN, step(INNER, after=2), *EVALUATE, step(OUTER, metric="float")] * 4,
        [*[*TRAIN, step(INNER, after=2)] * 3, *EVALUATE, *[*TRAIN, step(OUTER, after=2)] * 3],
        [*[*TRAIN[:2], step(INNER, after=1)] * 6, step(OUTER)] * 4,
        [*TRAIN, step(INNER, after=2), ModelCalled(model=1, grad=False), step(INNER)] * 4,
    ],
    ids=[
        "brought to where a run stopped",
        "one line, several processes",
        "per micro-batch",
        "a metric",
        "warm-up and after it",
        "per batch and once more per epoch",
        "acting without a loader",
    ],
)
def test_healthy_loops_are_quiet(healthy):
    assert judge(SchedulerSteppedTwice, [*MET, *healthy]) == []


def test_a_run_without_a_schedule_is_not_observed():
    assert SchedulerSteppedTwice().verdict(Progress()).reason == "no scheduler step"
