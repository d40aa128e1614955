"""Comparisons of a result with the wrong targets are reported by their mistake; sound ones are not."""

import pytest

from truestep.events import LossComputed, ModelMet, ResultCompared, Site
from truestep.rules.metric_off_target import MetricOffTarget
from truestep.testing import judge

CALL, COMPARED = Site("train.py", 20, 8), Site("metrics.py", 5, 4)
MET = ModelMet(model=1, name="net", parameters=(1,))
LOGITS = LossComputed(kind="binary_cross_entropy_with_logits", site=Site("train.py", 12))


def compared(how, **more):
    facts = {"predicted": (30,), "target": (30, 1), "samples": 30, "site": COMPARED, "call": CALL} | more
    return ResultCompared(model=1, how=how, **facts)


@pytest.mark.parametrize("how", ["broadcast", "one", "samples", "all", "scores"])
def test_a_mistake_is_found_at_the_comparison(how):
    (finding,) = judge(MetricOffTarget, [MET, compared(how), compared(how)])
    assert finding.primary.site == COMPARED
    assert finding.primary.label == "predictions (30,), targets (30, 1)"
    assert finding.seen.count == 2
    assert [mark.label for mark in finding.related] == ["the call"]


def test_targets_of_other_rows_are_found_at_the_call():
    (finding,) = judge(MetricOffTarget, [MET, compared("rows")])
    assert finding.primary.site == CALL
    assert finding.related[0].site == COMPARED


def test_a_threshold_of_probabilities_is_found_for_logits_only():
    half = compared("threshold", target=(), outside=60)
    (finding,) = judge(MetricOffTarget, [MET, LOGITS, half])
    assert "60 %" in finding.primary.label
    assert judge(MetricOffTarget, [MET, half]) == []
    assert judge(MetricOffTarget, [MET, LOGITS, LossComputed(kind="mse_loss"), half]) == []
    assert judge(MetricOffTarget, [MET, LOGITS, compared("threshold", target=(), outside=3)]) == []


def test_a_sound_comparison_is_quiet():
    assert judge(MetricOffTarget, [MET, compared("", target=(30,))] * 3) == []
