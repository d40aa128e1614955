"""Shares of samples and noise in the inputs of a diffusion model."""

import pytest

from truestep.events import LossRead, NoiseScaled, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.noise_scaled_by_variance import NoiseScaledByVariance
from truestep.testing import judge

MADE = Site("train.py", 30, 20)
WRONG, RIGHT = NoiseScaled(model=1, site=MADE, wrong=True), NoiseScaled(model=1, site=MADE)


def test_the_failure_is_found_at_the_line_of_the_input():
    (finding,) = judge(NoiseScaledByVariance, [WRONG] * 4)
    assert finding.primary.site == MADE
    assert finding.seen.count == 4


@pytest.mark.parametrize("events", [[WRONG] * 2, [RIGHT] * 5, [*[WRONG] * 4, RIGHT]])
def test_less_is_quiet(events):
    assert judge(NoiseScaledByVariance, events) == []


def test_verdicts():
    run = Progress()
    run.note(LossRead(value=1.0, root="MseLossBackward0"))
    assert NoiseScaledByVariance().verdict(run).reason == NoiseScaled.absent
    run.note(RIGHT)
    assert NoiseScaledByVariance().verdict(run).outcome is Outcome.CLEAR
