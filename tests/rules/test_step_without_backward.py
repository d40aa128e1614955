from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    GradientsTaken,
    HandStepped,
    ModelCalled,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.step_without_backward import StepWithoutBackward
from truestep.testing import judge

BACKWARD, STEP, SECOND = Site("train.py", 29, 8), Site("train.py", 30, 8), Site("train.py", 32, 8)
BUILT = OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1, 2))
MADE = BackwardEnded(site=BACKWARD, observed=2, written=2)
FED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
REUSED = OptimizerStepped(optimizer=1, site=SECOND, observed=2, reused=2)
EMPTY = OptimizerStepped(optimizer=1, site=STEP, observed=2, absent_grad=2)
OTHER = OptimizerStepped(optimizer=1, site=SECOND, observed=2, absent_grad=2)
CALLED = ModelCalled(model=1)


def test_a_second_step_on_the_same_gradient_is_found():
    (finding,) = judge(StepWithoutBackward, [BUILT, *[MADE, FED, REUSED] * 4])
    assert finding.primary.site == SECOND
    assert finding.related[0].site == STEP
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (4, 8, 1)
    assert finding.confidence is Confidence.HIGH


def test_a_single_repeated_step_has_low_confidence():
    (finding,) = judge(StepWithoutBackward, [BUILT, MADE, FED, REUSED])
    assert finding.confidence is Confidence.LOW


def test_steps_without_any_backward_are_found_at_the_end():
    (finding,) = judge(StepWithoutBackward, [BUILT, *[CALLED, EMPTY] * 12], ended="stopped")
    assert finding.primary.site == STEP
    assert finding.seen.count == 12
    assert "opt.step()" in finding.help


def test_steps_on_batches_that_no_model_sees_are_found():
    found = judge(StepWithoutBackward, [BUILT, *[BatchDrawn(loader=1), EMPTY] * 5, *[BatchDrawn(loader=1), OTHER] * 5])
    assert [finding.primary.site for finding in found] == [STEP, SECOND]
    assert {finding.confidence for finding in found} == {Confidence.MEDIUM}


def test_steps_that_came_again_are_counted():
    rule, run = StepWithoutBackward(), Progress()
    for event in [BUILT, *[CALLED, EMPTY] * 4]:
        run.note(event)
        rule.observe(event, run)
        run.advance(event)
    rule.again(EMPTY, 60)
    rule.ended(RunEnded(how="finished"), run)
    (finding,) = rule.findings(run)
    assert finding.seen.count == 64


def test_gradients_set_by_hand_are_quiet():
    hand = OptimizerStepped(optimizer=1, site=STEP, observed=2, by_hand=2)
    assert judge(StepWithoutBackward, [BUILT, MADE, FED, *[CALLED, hand] * 20]) == []
    assert judge(StepWithoutBackward, [BUILT, *[CALLED, hand] * 20]) == []


def test_a_constant_gradient_that_no_backward_made_is_quiet():
    hand = OptimizerStepped(optimizer=1, site=STEP, observed=2, by_hand=2)
    assert judge(StepWithoutBackward, [BUILT, hand, *[REUSED] * 20]) == []


def test_closures_and_scaler_attempts_are_quiet():
    closure = OptimizerStepped(optimizer=1, site=STEP, observed=2, reused=2, closure=True)
    attempt = OptimizerStepped(optimizer=1, site=STEP, observed=2, reused=2, scaler=True)
    assert judge(StepWithoutBackward, [BUILT, MADE, FED, *[closure, attempt] * 5]) == []


def test_two_optimizers_that_share_parameters_are_quiet():
    other = OptimizerBuilt(optimizer=2, name="head_opt", parameters=(1, 2, 3))
    head = OptimizerStepped(optimizer=2, site=SECOND, observed=3, fresh=1, reused=2)
    trunk_only = OptimizerStepped(optimizer=2, site=SECOND, observed=2, reused=2)
    assert judge(StepWithoutBackward, [BUILT, other, *[MADE, FED, head, MADE, FED, trunk_only] * 5]) == []


def test_parts_that_a_loss_does_not_reach_are_quiet():
    part = OptimizerStepped(optimizer=1, site=STEP, observed=2, reused=2)
    assert judge(StepWithoutBackward, [BUILT, MADE, FED, *[MADE, part] * 5]) == []


def test_a_rehearsal_of_a_schedule_is_quiet():
    assert judge(StepWithoutBackward, [BUILT, *[EMPTY] * 50]) == []


def test_gradients_of_another_source_are_quiet():
    assert judge(StepWithoutBackward, [BUILT, *[CALLED, GradientsTaken(), EMPTY] * 20]) == []
    assert judge(StepWithoutBackward, [BUILT, *[CALLED, EMPTY] * 20, HandStepped(moved=1)]) == []


def test_optimizers_that_read_no_gradients_are_quiet():
    evolution = OptimizerBuilt(optimizer=1, kind="EvolutionStrategy", parameters=(1, 2))
    assert judge(StepWithoutBackward, [evolution, *[CALLED, EMPTY] * 20]) == []
