import pytest

from truestep.events import LossComputed, OptimizerStepped, Site
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.softmax_before_cross_entropy import SoftmaxBeforeCrossEntropy
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)


def loss(kind="cross_entropy", rank=2, classes=10, **more):
    return LossComputed(kind=kind, site=LINE, input_rank=rank, target_rank=rank - 1, classes=classes, **more)


SOFTMAX = loss(input_from="SoftmaxBackward0", softmax_dim=-1)


def test_softmax_before_cross_entropy_is_found_at_the_loss():
    (finding,) = judge(SoftmaxBeforeCrossEntropy, [SOFTMAX, STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)
    assert "below 1.46" in finding.cost


@pytest.mark.parametrize(("rank", "dim"), [(1, -1), (3, -2), (4, -3)])
def test_the_class_dimension_depends_on_the_rank(rank, dim):
    event = loss(rank=rank, input_from="SoftmaxBackward0", softmax_dim=dim)
    assert len(judge(SoftmaxBeforeCrossEntropy, [event, STEP] * 2)) == 1


def test_probabilities_of_another_origin_are_found_with_medium_confidence():
    (finding,) = judge(SoftmaxBeforeCrossEntropy, [loss(input_from="DivBackward0", sums_to_one=True), STEP] * 2)
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "event",
    [
        loss(input_from="AddmmBackward0", sums_to_one=False),
        loss(input_from="LogSoftmaxBackward0"),
        loss(input_from="LogBackward0"),
        loss(rank=4, input_from="SoftmaxBackward0", softmax_dim=-1),
        loss(kind="nll_loss", input_from="SoftmaxBackward0", softmax_dim=-1),
        loss(input_from="", sums_to_one=True, grad=False),
        loss(classes=1, input_from="SoftmaxBackward0", softmax_dim=-1),
    ],
    ids=["logits", "log_softmax", "log", "attention over positions", "nll_loss", "a metric", "one class"],
)
def test_healthy_inputs_are_quiet(event):
    assert judge(SoftmaxBeforeCrossEntropy, [event, STEP] * 4) == []


def test_one_such_loss_is_quiet():
    assert judge(SoftmaxBeforeCrossEntropy, [SOFTMAX, STEP]) == []


def test_a_run_without_a_loss_function_is_not_observed():
    verdict = SoftmaxBeforeCrossEntropy().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no loss function of torch")
