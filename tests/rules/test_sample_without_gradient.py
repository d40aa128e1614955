"""Samples without a gradient, with a loss behind them that reaches their distribution by another way."""

from truestep.events import SampleUsed, Site, TapeRead
from truestep.rules.sample_without_gradient import SampleWithoutGradient
from truestep.testing import judge

SAMPLE, BACKWARD = Site("train.py", 24, 22), Site("train.py", 27)
USED = [TapeRead(site=BACKWARD), SampleUsed(kind="Normal", parameters=(1,), site=SAMPLE, loss=BACKWARD)]


def test_the_failure_is_found_at_its_line():
    (finding,) = judge(SampleWithoutGradient, USED * 4)
    assert finding.primary.site == SAMPLE
    assert finding.related[0].site == BACKWARD
    assert finding.seen.count == 4
    assert "Normal" in finding.message


def test_two_samples_are_quiet():
    assert not judge(SampleWithoutGradient, USED * 2)


def test_the_corrected_code_is_quiet():
    assert not judge(SampleWithoutGradient, [TapeRead(site=BACKWARD)] * 4)


def test_a_sample_of_a_function():
    (finding,) = judge(
        SampleWithoutGradient, [SampleUsed(kind="torch.normal", parameters=(1,), site=Site("a.py", 3))] * 3
    )
    assert finding.message.startswith("`torch.normal` drops the gradient")
    assert finding.help == "scale noise: `mean + scale * torch.randn_like(scale)`"
