"""Functions of a LambdaLR that return learning rates."""

from dataclasses import replace

import pytest

from truestep.events import (
    FactorsFollowed,
    LearningRateRead,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    SchedulerBuilt,
    Site,
)
from truestep.rules.lambda_returns_rate import LambdaReturnsRate
from truestep.testing import judge

BUILT, MADE = Site("train.py", 5), Site("train.py", 6)
END = RunEnded(how="finished")
FOUND = FactorsFollowed(
    scheduler=1, optimizer=1, base=5e-3, largest=5e-3, last=0.0, steps=100, since=70, values=4, site=MADE
)


def run(one=FOUND, *, rate=2.5e-5, updates=100, end=END, more=()):
    """Return the events of a run with one schedule."""
    optimizer = OptimizerBuilt(optimizer=1, name="optimizer", kind="AdamW", lr=one.base, site=BUILT)
    schedule = SchedulerBuilt(scheduler=1, optimizer=1, kind="LambdaLR", site=MADE)
    step = OptimizerStepped(optimizer=1, fresh=1, observed=1)
    read = LearningRateRead(optimizer=1, rates=(rate,))
    return [optimizer, schedule, read, *[step] * updates, *more, one, end]


def test_a_largest_factor_that_is_the_rate_is_found():
    (finding,) = judge(LambdaReturnsRate, run())
    assert finding.primary.site == MADE
    assert finding.message == "the function of `scheduler` returns a learning rate instead of a factor"
    assert finding.cost == "the largest learning rate was 2.5e-05 instead of 0.005"
    assert [mark.site for mark in finding.related] == [BUILT]


def test_a_plateau_at_the_rate_is_found():
    assert judge(LambdaReturnsRate, run(replace(FOUND, last=5e-3, since=60)))


@pytest.mark.parametrize(
    "one",
    [
        replace(FOUND, largest=1.0),
        replace(FOUND, largest=5.001e-3),
        replace(FOUND, base=1.0, largest=1.0),
        replace(FOUND, base=0.1, largest=0.1),
        replace(FOUND, base=0.0625, largest=0.0625),
        replace(FOUND, steps=3),
        replace(FOUND, values=2),
        replace(FOUND, last=5e-3, since=0),
        replace(FOUND, last=5e-3, since=60, values=3),
    ],
    ids=["factor", "near", "base 1", "a tenth", "root", "few steps", "phases", "still rising", "stairs"],
)
def test_other_factors_are_quiet(one):
    assert judge(LambdaReturnsRate, run(one)) == []


def test_other_runs_are_quiet():
    assert judge(LambdaReturnsRate, run(rate=5e-3)) == []
    assert judge(LambdaReturnsRate, run(updates=10)) == []
    assert judge(LambdaReturnsRate, run(end=RunEnded(how="interrupted"))) == []
    second = SchedulerBuilt(scheduler=2, optimizer=1, kind="StepLR")
    assert judge(LambdaReturnsRate, run(more=[second])) == []
    other = [OptimizerBuilt(optimizer=2, lr=5e-3), *[OptimizerStepped(optimizer=2, fresh=1, observed=1)] * 20]
    assert judge(LambdaReturnsRate, run(more=other)) == []
