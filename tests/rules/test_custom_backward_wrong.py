"""A wrong backward pass is reported at the line that calls the function; a right one is not."""

from truestep.events import CheckSkipped, DerivativeCompared, ModelMet, Site
from truestep.rules import Progress
from truestep.rules.custom_backward_wrong import CustomBackwardWrong
from truestep.testing import judge

MET = ModelMet(model=1, name="model", parameters=(1, 2))
LINE = Site("train.py", 7)


def compared(**facts: object) -> DerivativeCompared:
    return DerivativeCompared(model=1, function="Gate", site=LINE, **facts)  # type: ignore[arg-type]


def test_a_wrong_gradient_is_reported_with_its_ratio():
    (finding,) = judge(CustomBackwardWrong, [MET, compared(wrong=True, ratio=0.25)])
    assert finding.primary.site == LINE
    assert "`Gate`" in finding.message
    assert "0.25 times" in finding.cost


def test_a_right_gradient_is_quiet():
    assert judge(CustomBackwardWrong, [MET, compared()]) == []


def test_without_a_function_it_is_not_observed():
    rule, run = CustomBackwardWrong(), Progress()
    assert rule.verdict(run).reason == DerivativeCompared.absent
    rule.observe(CheckSkipped(check="derivatives", reason="the model was not checked: it has hooks"), run)
    assert rule.verdict(run).reason == "the model was not checked: it has hooks"
