"""Targets of errors with a gradient to the model that the error trains."""

import pytest

from truestep.events import LossRead, Site, TargetFollowed
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.target_with_gradient import TargetWithGradient
from truestep.testing import judge

BACKWARD, TARGET = Site("train.py", 34, 8), Site("train.py", 30, 20)
FOLLOWED = TargetFollowed(site=BACKWARD, made=TARGET, name="wanted")
CONSTANT = TargetFollowed(site=BACKWARD, gradient=False)


def test_the_failure_is_found_at_the_line_of_the_target():
    (finding,) = judge(TargetWithGradient, [FOLLOWED] * 4)
    assert finding.primary.site == TARGET
    assert finding.primary.label == "the value of the next state, as `wanted`, is computed with gradients"
    assert [mark.site for mark in finding.related] == [BACKWARD]
    assert finding.seen.count == 4


def test_without_a_variable_it_is_found_at_the_backward_pass():
    (finding,) = judge(TargetWithGradient, [TargetFollowed(site=BACKWARD)] * 3)
    assert finding.primary.site == BACKWARD
    assert finding.related == ()


@pytest.mark.parametrize("events", [[FOLLOWED] * 2, [CONSTANT] * 5, [*[FOLLOWED] * 4, CONSTANT]])
def test_less_is_quiet(events):
    assert judge(TargetWithGradient, events) == []


def test_verdicts():
    run = Progress()
    run.note(LossRead(value=1.0, root="MseLossBackward0"))
    assert TargetWithGradient().verdict(run).reason == TargetFollowed.absent
    run.note(CONSTANT)
    assert TargetWithGradient().verdict(run).outcome is Outcome.CLEAR
