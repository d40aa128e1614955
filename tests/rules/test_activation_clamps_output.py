import pytest

from truestep.events import LossComputed, OptimizerStepped, RatesRead, Site
from truestep.findings import Confidence, Outcome, Severity
from truestep.rules import Progress
from truestep.rules.activation_clamps_output import ActivationClampsOutput
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)


def loss(kind, made_by, **more):
    return LossComputed(kind=kind, site=LINE, input_rank=2, target_rank=1, input_from=made_by, made_by=made_by, **more)


RELU = loss("cross_entropy", "ReluBackward0", classes=10)


def test_a_relu_before_cross_entropy_is_found_at_the_loss():
    (finding,) = judge(ActivationClampsOutput, [RELU, STEP] * 3)
    assert finding.primary.site == LINE
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert (finding.seen.count, finding.seen.first_step) == (3, 0)
    assert finding.message == "cross entropy got the outputs of a ReLU where it expects logits"


@pytest.mark.parametrize(("made_by", "most"), [("SigmoidBackward0", 23), ("TanhBackward0", 45)])
def test_a_bounded_activation_before_cross_entropy_is_a_warning_with_its_limit(made_by, most):
    (finding,) = judge(ActivationClampsOutput, [loss("cross_entropy", made_by, classes=10), STEP] * 2)
    assert finding.severity is Severity.WARNING
    assert finding.cost == f"no class of 10 ever gets more than {most} % of the probability"


@pytest.mark.parametrize("made_by", ["ReluBackward0", "SoftplusBackward0", "TanhBackward0"])
def test_activations_before_binary_cross_entropy_with_logits_are_found(made_by):
    (finding,) = judge(ActivationClampsOutput, [loss("binary_cross_entropy_with_logits", made_by), STEP] * 2)
    assert "no label ever gets a probability" in finding.cost


def test_targets_out_of_reach_are_found_at_the_second_look():
    looks = [loss("mse_loss", "SigmoidBackward0", beyond=80), STEP, loss("mse_loss", "SigmoidBackward0"), STEP]
    assert judge(ActivationClampsOutput, looks) == []
    (finding,) = judge(ActivationClampsOutput, [*looks, loss("mse_loss", "SigmoidBackward0", beyond=78)])
    assert finding.cost == "78 % of the targets are outside the range of a sigmoid (at a sampled step)"
    assert finding.seen.first_step == 0


@pytest.mark.parametrize(
    "event",
    [
        loss("cross_entropy", "AddmmBackward0", classes=10),
        loss("cross_entropy", "MeanBackward1", classes=10),
        loss("cross_entropy", "MulBackward0", classes=10),
        loss("cross_entropy", "ReluBackward0", classes=10, grad=False),
        loss("cross_entropy", "SoftmaxBackward0", classes=10),
        loss("binary_cross_entropy", "SigmoidBackward0"),
        loss("binary_cross_entropy_with_logits", "SigmoidBackward0"),
        loss("mse_loss", "ReluBackward0", beyond=4),
        loss("mse_loss", "ReluBackward0"),
        loss("l1_loss", "ReluBackward0", beyond=60, reduction="none"),
        loss("nll_loss", "ReluBackward0", classes=10),
    ],
    ids=[
        "logits", "a pooled ReLU", "a scaled activation", "a metric", "softmax has a separate rule", "probabilities",
        "sigmoid has a separate rule", "noise below zero", "not looked at", "masked, perhaps", "another rule's loss",
    ],
)  # fmt: skip
def test_healthy_losses_are_quiet(event):
    assert judge(ActivationClampsOutput, [event, STEP] * 4) == []


def test_one_such_loss_is_quiet():
    assert judge(ActivationClampsOutput, [RELU, STEP]) == []


def test_a_run_without_a_loss_function_is_not_observed():
    verdict = ActivationClampsOutput().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no loss function of torch")


@pytest.mark.parametrize(
    ("made_by", "expected"), [("SoftplusBackward0", 1), ("ExpBackward0", 1), ("AddmmBackward0", 0)]
)
def test_logarithms_of_rates_from_an_activation_are_found_at_two_steps(made_by, expected):
    read = RatesRead(site=Site("train.py", 30), made_by=made_by)
    assert judge(ActivationClampsOutput, [read, STEP]) == []
    assert len(judge(ActivationClampsOutput, [read, STEP] * 2)) == expected
