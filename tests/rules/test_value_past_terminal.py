"""Targets with a value where the episode has ended."""

import pytest

from truestep.events import EndsRead, LossRead, OptimizerStepped, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.value_past_terminal import ValuePastTerminal
from truestep.testing import judge

BACKWARD, TARGET = Site("train.py", 34, 8), Site("train.py", 30, 20)
CARRIED = EndsRead(site=BACKWARD, made=TARGET, name="done")
MASKED = EndsRead(site=BACKWARD, carried=False)
STEP = OptimizerStepped(optimizer=1)


def test_the_failure_is_found_at_the_line_of_the_target():
    (finding,) = judge(ValuePastTerminal, [CARRIED, STEP] * 4)
    assert finding.primary.site == TARGET
    assert finding.primary.label == "a discounted value is added in each row that `done` marks as an end"
    assert [mark.site for mark in finding.related] == [BACKWARD]
    assert finding.help == "set the value of the next state to zero where `done` marks an end"


@pytest.mark.parametrize(
    "events",
    [[CARRIED], [CARRIED] * 3, [MASKED, STEP] * 4, [*[CARRIED, STEP] * 4, MASKED], [MASKED, *[CARRIED, STEP] * 4]],
)
def test_less_is_quiet(events):
    assert judge(ValuePastTerminal, events) == []


def test_verdicts():
    run = Progress()
    run.note(LossRead(value=1.0, root="MseLossBackward0"))
    assert ValuePastTerminal().verdict(run).reason == EndsRead.absent
    run.note(MASKED)
    assert ValuePastTerminal().verdict(run).outcome is Outcome.CLEAR
