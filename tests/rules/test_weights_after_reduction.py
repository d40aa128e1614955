"""Weights of samples beside a loss that is averaged already."""

import pytest

from truestep.events import LossRead, Site, WeightsFollowed
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.weights_after_reduction import WeightsAfterReduction
from truestep.testing import judge

BACKWARD, MADE = Site("train.py", 34, 8), Site("train.py", 30, 20)
REDUCED = WeightsFollowed(site=BACKWARD, made=MADE, name="mask", count=64, reduced="weights")
FOCAL = WeightsFollowed(site=BACKWARD, made=MADE, count=64, reduced="focal")
RIGHT = WeightsFollowed(site=BACKWARD)


def test_the_failure_is_found_at_the_line_of_the_loss():
    (finding,) = judge(WeightsAfterReduction, [REDUCED] * 4)
    assert finding.primary.site == MADE
    assert finding.message == "`mask` is multiplied with a loss that is already averaged"
    assert [mark.site for mark in finding.related] == [BACKWARD]
    assert finding.seen.count == 4


def test_without_a_line_it_is_found_at_the_backward_pass():
    (finding,) = judge(WeightsAfterReduction, [WeightsFollowed(site=BACKWARD, count=1024, reduced="weights")] * 3)
    assert finding.primary.site == BACKWARD
    assert finding.message.startswith("1,024 weights are multiplied")
    assert finding.related == ()


def test_a_focal_loss_has_a_message_of_its_own():
    (finding,) = judge(WeightsAfterReduction, [FOCAL] * 3)
    assert finding.message.startswith("the factor of the focal loss")


@pytest.mark.parametrize("events", [[REDUCED] * 2, [FOCAL] * 2, [RIGHT] * 5, [*[REDUCED] * 4, RIGHT]])
def test_less_is_quiet(events):
    assert judge(WeightsAfterReduction, events) == []


def test_verdicts():
    run = Progress()
    run.note(LossRead(value=1.0, root="AddBackward0"))
    assert WeightsAfterReduction().verdict(run).reason == WeightsFollowed.absent
    run.note(RIGHT)
    assert WeightsAfterReduction().verdict(run).outcome is Outcome.CLEAR
