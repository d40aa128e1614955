import pytest

from truestep.events import LossComputed, OptimizerStepped, Site, SquashedTwice
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.sigmoid_before_bce_with_logits import SigmoidBeforeBceWithLogits
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)


def loss(kind="binary_cross_entropy_with_logits", **more):
    return LossComputed(kind=kind, site=LINE, input_rank=1, target_rank=1, **more)


SIGMOID = loss(input_from="SigmoidBackward0", made_by="SigmoidBackward0")


def test_a_sigmoid_before_the_loss_is_found_at_the_loss():
    (finding,) = judge(SigmoidBeforeBceWithLogits, [SIGMOID, STEP] * 3)
    assert finding.primary.site == LINE
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)
    assert "a sigmoid" in finding.primary.label


def test_a_sigmoid_that_is_squeezed_on_its_way_is_found():
    squeezed = loss(input_from="SqueezeBackward1", made_by="SigmoidBackward0")
    assert len(judge(SigmoidBeforeBceWithLogits, [squeezed, STEP] * 2)) == 1


def test_a_softmax_before_the_loss_is_named():
    (finding,) = judge(SigmoidBeforeBceWithLogits, [loss(made_by="SoftmaxBackward0"), STEP] * 2)
    assert "a softmax" in finding.primary.label


@pytest.mark.parametrize(
    "event",
    [
        loss(made_by="AddmmBackward0"),
        loss(made_by="MulBackward0"),
        loss(kind="binary_cross_entropy", made_by="SigmoidBackward0"),
        loss(kind="mse_loss", made_by="SigmoidBackward0"),
        loss(made_by="SigmoidBackward0", grad=False),
    ],
    ids=["logits", "a gate times logits", "the loss for probabilities", "regression", "a metric"],
)
def test_healthy_inputs_are_quiet(event):
    assert judge(SigmoidBeforeBceWithLogits, [event, STEP] * 4) == []


def test_one_such_loss_is_quiet():
    assert judge(SigmoidBeforeBceWithLogits, [SIGMOID, STEP]) == []


def test_a_run_without_a_loss_function_is_not_observed():
    verdict = SigmoidBeforeBceWithLogits().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no loss function of torch")


def test_a_loss_by_hand_is_found_at_its_backward_pass():
    (finding,) = judge(SigmoidBeforeBceWithLogits, [SquashedTwice(site=LINE, form="logsigmoid"), STEP] * 3)
    assert finding.primary.site == LINE
    assert "`logsigmoid` gets the result of a sigmoid" in finding.primary.label
    assert finding.seen.count == 3
