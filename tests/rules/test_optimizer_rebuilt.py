import pytest

from truestep.events import (
    BackwardEnded,
    LoaderMet,
    LoaderStarted,
    OptimizerBuilt,
    OptimizerStepped,
    SchedulerBuilt,
    Site,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.optimizer_rebuilt import OptimizerRebuilt
from truestep.testing import judge

LINE = Site("train.py", 30, 8)
MET, PASS = LoaderMet(loader=1), LoaderStarted(loader=1)


def run(lives: int, steps: int = 1, before=(), loader: int | None = 1, keep: bool = True, **more):
    """Return the events of optimizers that are built one after another, each for some steps."""
    events = []
    for number in range(1, lives + 1):
        fields = {
            "kind": "Adam",
            "lr": 1e-3,
            "remembers": True,
            "replaces": number - 1 if number > 1 and keep else None,
        }
        fields |= {key: value(number) if callable(value) else value for key, value in more.items()}
        events.append(OptimizerBuilt(optimizer=number, name="opt", site=LINE, parameters=(1,), **fields))
        events += before
        events += [BackwardEnded(loader=loader), OptimizerStepped(optimizer=number, fresh=1, observed=1)] * steps
    return events


def test_an_optimizer_for_each_batch_is_found_with_high_confidence():
    (finding,) = judge(OptimizerRebuilt, [MET, PASS, *run(30)])
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.HIGH)
    assert finding.message == "`opt` was built again for each step, and the moments of the one before were lost"
    assert finding.cost == "29 times in 29 steps, an optimizer began without momentum or moments"
    assert (finding.seen.count, finding.seen.total) == (29, 30)


def test_an_optimizer_for_each_pass_is_found_with_medium_confidence():
    (finding,) = judge(OptimizerRebuilt, [MET, *run(4, steps=10, before=[PASS])])
    assert finding.confidence is Confidence.MEDIUM
    assert "for each pass over the data" in finding.message


def test_without_a_loader_a_pass_over_slices_counts():
    (finding,) = judge(OptimizerRebuilt, run(5, steps=10, loader=None, one_pass=lambda number: number > 1))
    assert finding.confidence is Confidence.MEDIUM


def test_without_a_loader_an_equal_number_of_steps_has_low_confidence():
    (finding,) = judge(OptimizerRebuilt, run(5, steps=10, loader=None))
    assert finding.confidence is Confidence.LOW


@pytest.mark.parametrize(
    "events",
    [
        run(30, remembers=False),
        run(30, keep=False),
        run(4),
        run(30, lr=lambda number: 0.1 / number),
        run(30, before=[SchedulerBuilt(scheduler=1, optimizer=number) for number in range(30)]),
        [MET, *run(9, steps=10, before=[PASS, PASS])],
        [MET, *run(2, steps=10, before=[PASS])],
    ],
    ids=[
        "plain SGD",
        "weights written",
        "a few",
        "other rates",
        "a schedule for each",
        "several passes",
        "one restart",
    ],
)
def test_other_optimizers_are_quiet(events):
    assert judge(OptimizerRebuilt, events) == []


def test_without_an_optimizer_it_is_not_observed():
    verdict = OptimizerRebuilt().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no optimizer")
