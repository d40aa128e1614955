"""Rules that report a line after three readings of it."""

import pytest

from truestep.events import AdvantageFollowed, NoiseScaled, SampleUsed, Site, TapeRead, TargetFollowed
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.advantage_with_gradient import AdvantageWithGradient
from truestep.rules.noise_scaled_by_variance import NoiseScaledByVariance
from truestep.rules.sample_without_gradient import SampleWithoutGradient
from truestep.rules.target_with_gradient import TargetWithGradient

LINE = Site("train.py", 10, 4)
RULES = [
    (AdvantageWithGradient, AdvantageFollowed(site=LINE)),
    (NoiseScaledByVariance, NoiseScaled(model=1, site=LINE, wrong=True)),
    (SampleWithoutGradient, SampleUsed(site=LINE, kind="torch.normal")),
    (TargetWithGradient, TargetFollowed(site=LINE)),
]


@pytest.mark.parametrize(("rule", "event"), RULES)
@pytest.mark.parametrize(
    ("reads", "outcome"), [(0, Outcome.CLEAR), (1, Outcome.NOT_OBSERVED), (2, Outcome.NOT_OBSERVED), (3, Outcome.FOUND)]
)
def test_one_or_two_readings_are_neither_clear_nor_found(rule, event, reads, outcome):
    run, judge = Progress([type(event), TapeRead]), rule()
    for _ in range(reads):
        judge.observe(event, run)
    assert judge.verdict(run).outcome is outcome


def test_a_finding_is_withdrawn_from_a_line_that_is_unknown():
    run, rule = Progress([AdvantageFollowed]), AdvantageWithGradient()
    for _ in range(3):
        rule.observe(AdvantageFollowed(made=LINE), run)
    assert len(rule.findings(run)) == 1
    rule.observe(AdvantageFollowed(gradient=False), run)
    assert rule.findings(run) == []
