"""Similarities of unit vectors that are made smaller before a softmax."""

import pytest

from truestep.events import LossRead, SimilaritiesRead, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.similarities_scaled_down import SimilaritiesScaledDown
from truestep.testing import judge

BACKWARD, MADE = Site("train.py", 34, 8), Site("train.py", 30, 20)
SMALL = SimilaritiesRead(site=BACKWARD, made=MADE, factor=0.1, classes=128, least=0.96)
RIGHT = SimilaritiesRead(site=BACKWARD, made=MADE, factor=10.0, classes=128, least=0.0)
PLAIN = SimilaritiesRead(site=BACKWARD, made=MADE, factor=1.0, classes=1000, least=0.711)


def test_the_failure_is_found_at_the_line_of_the_similarities():
    (finding,) = judge(SimilaritiesScaledDown, [SMALL] * 4)
    assert finding.primary.site == MADE
    assert finding.primary.label == "logits lie between -0.1 and 0.1"
    assert [mark.site for mark in finding.related] == [BACKWARD]
    assert finding.seen.count == 4


def test_without_a_line_it_is_found_at_the_backward_pass():
    (finding,) = judge(SimilaritiesScaledDown, [SimilaritiesRead(site=BACKWARD, classes=64, least=0.95)] * 3)
    assert finding.primary.site == BACKWARD
    assert finding.related == ()


@pytest.mark.parametrize("events", [[SMALL] * 2, [PLAIN] * 5, [RIGHT] * 5, [*[SMALL] * 4, RIGHT]])
def test_less_is_quiet(events):
    assert judge(SimilaritiesScaledDown, events) == []


def test_verdicts():
    run = Progress()
    run.note(LossRead(value=1.0, root="NllLossBackward0"))
    assert SimilaritiesScaledDown().verdict(run).reason == SimilaritiesRead.absent
    run.note(RIGHT)
    assert SimilaritiesScaledDown().verdict(run).outcome is Outcome.CLEAR
