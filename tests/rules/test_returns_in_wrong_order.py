"""Weights of a policy gradient that are sums of earlier rewards."""

import pytest

from truestep.events import LossRead, ReturnsFollowed, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.returns_in_wrong_order import ReturnsInWrongOrder
from truestep.testing import judge

BACKWARD, MADE = Site("train.py", 34, 8), Site("train.py", 30, 20)
EARLIER = ReturnsFollowed(site=BACKWARD, made=MADE, name="returns")
LATER = ReturnsFollowed(site=BACKWARD, earlier=False)


def test_the_failure_is_found_at_the_line_of_the_returns():
    (finding,) = judge(ReturnsInWrongOrder, [EARLIER] * 4)
    assert finding.primary.site == MADE
    assert finding.primary.label == "`returns` has the rewards of earlier steps, not of later ones"
    assert [mark.site for mark in finding.related] == [BACKWARD]
    assert finding.seen.count == 4


def test_without_a_variable_it_is_found_at_the_backward_pass():
    (finding,) = judge(ReturnsInWrongOrder, [ReturnsFollowed(site=BACKWARD)] * 3)
    assert finding.primary.site == BACKWARD
    assert finding.related == ()


@pytest.mark.parametrize("events", [[EARLIER] * 2, [LATER] * 5, [*[EARLIER] * 4, LATER]])
def test_less_is_quiet(events):
    assert judge(ReturnsInWrongOrder, events) == []


def test_verdicts():
    run = Progress()
    run.note(LossRead(value=1.0, root="MeanBackward0"))
    assert ReturnsInWrongOrder().verdict(run).reason == ReturnsFollowed.absent
    run.note(LATER)
    assert ReturnsInWrongOrder().verdict(run).outcome is Outcome.CLEAR
