from truestep.events import (
    BackwardEnded,
    GradientsZeroed,
    HandStepped,
    ModelCalled,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParametersUnchanged,
    RunEnded,
    Site,
    TapeRead,
)
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.backward_without_step import BackwardWithoutStep
from truestep.testing import judge

BACKWARD, STEP, MADE = Site("train.py", 33, 8), Site("train.py", 34, 8), Site("train.py", 26)
ENCODER = OptimizerBuilt(optimizer=1, name="enc_opt", parameters=(1, 2), site=MADE)
HEAD = OptimizerBuilt(optimizer=2, name="head_opt", parameters=(3, 4))
CALLED = ModelCalled(model=1)
READ = TapeRead(site=BACKWARD, reached=(1, 2, 3, 4))
BACK = BackwardEnded(site=BACKWARD, observed=4, written=4, loader=1)
HEAD_STEP = OptimizerStepped(optimizer=2, site=STEP, observed=2, fresh=2)
CLEARED = [GradientsZeroed(optimizer=1, fresh=2, observed=2), GradientsZeroed(optimizer=2, used=2, observed=2)]
STILL = ParametersUnchanged(parameters=(1, 2), steps=10)
WINDOW = [*CLEARED, CALLED, READ, BACK, STILL, HEAD_STEP]


def shown(findings):
    return [finding for finding in findings if finding.confidence is not Confidence.LOW]


def test_the_forgotten_one_of_two_optimizers_is_found_at_the_backward():
    (finding,) = judge(BackwardWithoutStep, [ENCODER, HEAD, *WINDOW * 12])
    assert finding.primary.site == BACKWARD
    assert finding.related[0].site == MADE
    assert "enc_opt" in finding.message
    assert (finding.seen.count, finding.seen.unit) == (12, "backward passes")
    assert finding.confidence is Confidence.HIGH
    assert finding.cost == "2 parameters kept their initial values"


def test_no_step_at_all_is_found():
    (finding,) = judge(BackwardWithoutStep, [ENCODER, *[CLEARED[0], CALLED, READ, BACK] * 12])
    assert finding.confidence is Confidence.HIGH


def test_a_window_that_is_never_full_is_found():
    more = BackwardEnded(site=BACKWARD, observed=4, written=4, onto_fresh=4, loader=1)
    (finding,) = judge(BackwardWithoutStep, [ENCODER, *[CALLED, READ, more] * 12])
    assert finding.confidence is Confidence.MEDIUM


def test_backwards_that_came_again_are_counted():
    rule, run = BackwardWithoutStep(), Progress()
    for event in [ENCODER, HEAD, *WINDOW * 4]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
    for event in (*CLEARED, BACK):
        rule.again(event, 100)
    rule.ended(RunEnded(how="finished"), run)
    (finding,) = rule.findings(run)
    assert finding.seen.count == 104


def test_a_run_that_was_stopped_is_not_observed():
    rule, run = BackwardWithoutStep(), Progress()
    for event in [ENCODER, HEAD, *WINDOW * 12]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
    rule.ended(RunEnded(how="stopped"), run)
    assert rule.findings(run) == []
    assert rule.verdict(run).outcome == "not-observed"


def test_an_optimizer_of_a_later_phase_is_quiet():
    late = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
    assert judge(BackwardWithoutStep, [ENCODER, HEAD, *WINDOW * 12, late]) == []


def test_accumulation_into_one_large_window_is_quiet():
    late = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
    assert judge(BackwardWithoutStep, [ENCODER, *[CALLED, READ, BACK] * 50, late]) == []


def test_an_optimizer_that_another_one_replaced_is_quiet():
    again = OptimizerBuilt(optimizer=3, name="opt", parameters=(1, 2, 3, 4))
    step = OptimizerStepped(optimizer=3, site=STEP, observed=4, fresh=4)
    assert judge(BackwardWithoutStep, [ENCODER, HEAD, again, *[*CLEARED, CALLED, READ, BACK, step] * 12]) == []


def test_updates_by_hand_are_quiet():
    assert judge(BackwardWithoutStep, [ENCODER, *[CALLED, READ, BACK, HandStepped(moved=2)] * 12]) == []


def test_an_idle_optimizer_beside_other_parameters_that_move_by_hand_is_found():
    (finding,) = judge(BackwardWithoutStep, [ENCODER, HEAD, *[*WINDOW, HandStepped(moved=1)] * 12])
    assert "enc_opt" in finding.message
    assert finding.confidence is Confidence.HIGH


def test_parameters_that_move_by_hand_are_quiet_beside_an_optimizer_that_steps():
    window = [*CLEARED, CALLED, READ, BACK, HEAD_STEP, HandStepped(moved=2)]
    assert judge(BackwardWithoutStep, [ENCODER, HEAD, *window * 12]) == []


def test_saliency_in_eval_mode_is_quiet():
    seen = ModelCalled(model=1, training=False)
    assert judge(BackwardWithoutStep, [ENCODER, *[CLEARED[0], seen, READ, BACK] * 20]) == []


def test_a_fixed_network_that_came_with_its_optimizer_is_not_shown():
    window = [CLEARED[1], CALLED, READ, BACK, STILL, HEAD_STEP]
    assert shown(judge(BackwardWithoutStep, [ENCODER, HEAD, *window * 20])) == []


def test_an_optimizer_stepped_inside_another_is_not_shown():
    window = [*CLEARED, CALLED, READ, BACK, HEAD_STEP]
    assert shown(judge(BackwardWithoutStep, [ENCODER, HEAD, *window * 20])) == []


def test_a_backward_for_one_model_alone_that_clears_its_own_gradients_is_found(tmp_path):
    own, model = Site("train.py", 40, 8), ModelMet(model=1, parameters=(1, 2))
    alone = [TapeRead(site=own, reached=(1, 2)), BackwardEnded(site=own, observed=2, written=2, loader=1)]
    window = [GradientsZeroed(model=1, fresh=2, observed=2), CALLED, *alone, READ, BACK, STILL, HEAD_STEP]
    (finding,) = shown(judge(BackwardWithoutStep, [model, ENCODER, HEAD, *window * 12]))
    assert (finding.primary.site, finding.confidence) == (own, Confidence.HIGH)
    path = tmp_path / "train.py"
    path.write_text("enc_opt = make()\nfor step in range(100):\n    if step > 1000:\n        enc_opt.step()\n")
    later = OptimizerBuilt(optimizer=1, name="enc_opt", parameters=(1, 2), site=Site(str(path), 1))
    assert shown(judge(BackwardWithoutStep, [model, later, HEAD, *window * 12])) == []
    through = [GradientsZeroed(model=1, fresh=2, observed=2), CALLED, READ, BACK, STILL, HEAD_STEP]
    assert shown(judge(BackwardWithoutStep, [model, ENCODER, HEAD, *through * 12])) == []
