from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    GradientsTaken,
    HandStepped,
    ModelCalled,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
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


NET = [ParameterMet(parameter=n, name=f"w{n}", model=1) for n in (1, 2)] + [
    ModelMet(model=1, name="G", parameters=(1, 2))
]
RIVAL = OptimizerBuilt(optimizer=2, name="opt_d", kind="Adam", parameters=(3, 4))
TRAINED = [ModelCalled(model=2), MADE, OptimizerStepped(optimizer=2, site=SECOND, observed=2, fresh=2)]


def test_an_optimizer_that_never_had_a_gradient_beside_one_that_trains_is_found():
    (finding,) = judge(StepWithoutBackward, [*NET, BUILT, RIVAL, *[*TRAINED, CALLED, MADE, EMPTY] * 12])
    assert (finding.primary.site, finding.related[0].site) == (STEP, SECOND)
    assert finding.confidence is Confidence.MEDIUM
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (12, 12, 1)
    assert "`G`" in finding.help


def test_an_optimizer_that_waits_for_its_first_gradient_is_quiet():
    late = [*[*TRAINED, CALLED, EMPTY] * 12, CALLED, MADE, FED]
    assert judge(StepWithoutBackward, [*NET, BUILT, RIVAL, *late]) == []


def test_a_part_whose_loss_is_not_in_the_common_one_is_of_low_confidence():
    """A warm-up, a weight of zero: one backward pass, then all optimizers step."""
    (finding,) = judge(StepWithoutBackward, [*NET, BUILT, RIVAL, *[CALLED, *TRAINED, EMPTY] * 12])
    assert (finding.primary.site, finding.seen.count) == (STEP, 12)
    assert finding.confidence is Confidence.LOW
    own_first = [ModelCalled(model=2), CALLED, MADE, EMPTY, TRAINED[-1]]
    (finding,) = judge(StepWithoutBackward, [*NET, BUILT, RIVAL, *own_first * 12])
    assert finding.confidence is Confidence.LOW


def test_an_optimizer_of_a_part_that_never_ran_is_quiet():
    assert judge(StepWithoutBackward, [*NET, BUILT, RIVAL, *[*TRAINED, BatchDrawn(loader=1), EMPTY] * 12]) == []


def test_an_optimizer_of_a_frozen_model_is_quiet():
    frozen = [ParameterMet(parameter=n, name=f"w{n}", model=1, trainable=False) for n in (1, 2)]
    assert judge(StepWithoutBackward, [*frozen, NET[-1], BUILT, RIVAL, *[*TRAINED, CALLED, EMPTY] * 12]) == []


def test_a_run_that_was_stopped_says_nothing_of_an_optimizer_without_gradients():
    events = [*NET, BUILT, RIVAL, *[*TRAINED, CALLED, MADE, EMPTY] * 12]
    assert judge(StepWithoutBackward, events, ended="stopped") == []
