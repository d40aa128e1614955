"""Advantages with a gradient to the critic in the loss of a policy."""

import pytest

from truestep.events import AdvantageFollowed, LossRead, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.advantage_with_gradient import AdvantageWithGradient
from truestep.testing import judge

BACKWARD, MADE = Site("train.py", 34, 8), Site("train.py", 30, 20)
FOLLOWED = AdvantageFollowed(site=BACKWARD, made=MADE, name="gain")
CONSTANT = AdvantageFollowed(site=BACKWARD, gradient=False)


def test_the_failure_is_found_at_the_line_of_the_advantage():
    (finding,) = judge(AdvantageWithGradient, [FOLLOWED] * 4)
    assert finding.primary.site == MADE
    assert finding.primary.label == "`gain` is computed with gradients"
    assert [mark.site for mark in finding.related] == [BACKWARD]
    assert finding.seen.count == 4


def test_without_a_variable_it_is_found_at_the_backward_pass():
    (finding,) = judge(AdvantageWithGradient, [AdvantageFollowed(site=BACKWARD)] * 3)
    assert finding.primary.site == BACKWARD
    assert finding.related == ()


@pytest.mark.parametrize("events", [[FOLLOWED] * 2, [CONSTANT] * 5, [*[FOLLOWED] * 4, CONSTANT]])
def test_less_is_quiet(events):
    assert judge(AdvantageWithGradient, events) == []


def test_verdicts():
    run = Progress()
    run.note(LossRead(value=1.0, root="AddBackward0"))
    assert AdvantageWithGradient().verdict(run).reason == AdvantageFollowed.absent
    run.note(CONSTANT)
    assert AdvantageWithGradient().verdict(run).outcome is Outcome.CLEAR
