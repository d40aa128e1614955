import pytest

from truestep.events import (
    BackwardEnded,
    HandStepped,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    Site,
    TapeRead,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.loss_without_parameters import LossWithoutParameters
from truestep.testing import judge

BACKWARD, STEP = Site("train.py", 38, 8), Site("train.py", 41, 8)
MET = [
    *(ParameterMet(parameter=n, name=f"net.{n}", model=1) for n in (1, 2)),
    ModelMet(model=1, name="net", parameters=(1, 2)),
    OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2)),
    ParameterMet(parameter=9, name="parameter 9"),
]
EMPTY = OptimizerStepped(optimizer=1, site=STEP, observed=2, absent_grad=2)
FED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)


def step(reached=(9,), forwarded=(1, 2), then=EMPTY, **more):
    read = TapeRead(site=BACKWARD, reached=reached, forwarded=forwarded, **more)
    return [read, BackwardEnded(site=BACKWARD), then]


def test_a_loss_that_reaches_a_tensor_without_an_owner_is_found_at_the_backward():
    (finding,) = judge(LossWithoutParameters, [*MET, *step() * 4, *[BackwardEnded(site=BACKWARD), EMPTY] * 6])
    assert finding.primary.site == BACKWARD
    assert finding.related[0].site == STEP
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "the loss depends on no trainable parameter"
    assert (finding.seen.count, finding.seen.first_step) == (10, 0)


def test_a_loss_without_history_and_without_a_model_is_found():
    (finding,) = judge(LossWithoutParameters, [*MET, *step(reached=(), forwarded=(), leaf_root=True) * 3])
    assert "without a graph" in finding.primary.label


def test_a_few_empty_steps_are_too_little_to_be_sure():
    (finding,) = judge(LossWithoutParameters, [*MET, *step() * 5])
    assert finding.confidence is Confidence.LOW


def test_steps_that_are_only_counted_are_counted():
    rule, run = LossWithoutParameters(), Progress()
    for event in [*MET, *step() * 3]:
        run.note(event)
        rule.observe(event, run)
        run.advance(event)
    rule.again(EMPTY, 40)
    (finding,) = rule.findings(run)
    assert finding.seen.count == 43
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "events",
    [
        step(reached=(1, 2), then=FED) * 5,
        step() * 2,
        step(then=FED) * 5,
        step(reached=(), leaf_root=True) * 5,
        step(opaque=True) * 5,
        step(reached=(9, 1)) * 5,
        [*step() * 5, *step(reached=(1, 2), then=FED)],
        [*step() * 5, HandStepped(site=STEP, moved=1)],
        step(then=OptimizerStepped(optimizer=1, observed=2, absent_grad=1, by_hand=1)) * 5,
        step(then=OptimizerStepped(optimizer=1, observed=2, absent_grad=2, closure=True)) * 5,
        [BackwardEnded(site=BACKWARD), EMPTY] * 20,
    ],
    ids=[
        "a loss of parameters", "two tapes", "gradients of another backward", "cut after the model", "compiled",
        "reached but not stepped", "constant losses at first", "parameters moved by hand", "gradients set by hand",
        "a closure", "no tape was read",
    ],
)  # fmt: skip
def test_other_losses_are_quiet(events):
    assert judge(LossWithoutParameters, [*MET, *events]) == []


def test_a_frozen_model_is_another_failure():
    frozen = [
        ParameterMet(parameter=1, name="net.1", model=1, trainable=False),
        OptimizerBuilt(optimizer=1, parameters=(1,)),
    ]
    assert judge(LossWithoutParameters, [*frozen, *step() * 5]) == []


def test_compiled_tapes_are_not_observed():
    rule, run = LossWithoutParameters(), Progress()
    for event in [*MET, *step(opaque=True) * 3]:
        run.note(event)
        rule.observe(event, run)
        run.advance(event)
    verdict = rule.verdict(run)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no readable autograd tape")
