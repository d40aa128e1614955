from truestep.events import BackwardEnded, BatchDrawn, GradientsTaken, ModelCalled, ModelMet, OptimizerStepped, Site
from truestep.findings import Confidence, Outcome, Severity
from truestep.rules import Progress
from truestep.rules.no_grad_missing import NoGradMissing
from truestep.testing import judge

TRAIN, EVAL = Site("train.py", 20, 8), Site("train.py", 30, 12)
MET = [ModelMet(model=1, name="net", parameters=(1, 2))]
STEP = [ModelCalled(model=1, site=TRAIN), BackwardEnded(), OptimizerStepped(optimizer=1)]


def look(loader=2, **more):
    call = ModelCalled(model=1, site=EVAL, training=False, loader=loader, **more)
    return [BatchDrawn(loader=loader), call] if loader else [call]


def test_an_evaluation_that_records_graphs_is_found_at_its_call():
    (finding,) = judge(NoGradMissing, [*MET, *(STEP + look() * 4) * 2])
    assert finding.primary.site == EVAL
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.first_step) == (2, 1)
    assert finding.cost.startswith("4 graphs")
    assert "no_grad" in finding.help


def test_slices_without_a_loader_are_found_with_medium_confidence():
    (finding,) = judge(NoGradMissing, [*MET, *(STEP + look(None) * 2) * 3])
    assert finding.confidence is Confidence.MEDIUM


def test_evaluation_under_no_grad_is_quiet():
    assert judge(NoGradMissing, [*MET, *(STEP + look(grad=False, tracked=False) * 4) * 2]) == []


def test_saliency_and_adversarial_examples_are_quiet():
    backward = [*look(), BackwardEnded(), *look(), GradientsTaken()]
    assert judge(NoGradMissing, [*MET, *(STEP + backward * 3) * 3]) == []


def test_a_backward_after_the_whole_pass_is_quiet():
    assert judge(NoGradMissing, [*MET, *STEP, *look() * 5, BackwardEnded(), *STEP]) == []


def test_a_frozen_model_is_quiet():
    assert judge(NoGradMissing, [*MET, *(STEP + look(tracked=False) * 4) * 2]) == []


def test_a_model_that_is_never_trained_is_quiet():
    assert judge(NoGradMissing, [*MET, *look() * 5, BackwardEnded(), *look() * 5]) == []


def test_training_in_eval_mode_is_quiet():
    step = [*look(), BackwardEnded(), OptimizerStepped(optimizer=1)]
    assert judge(NoGradMissing, [*MET, *STEP, *step * 6]) == []


def test_a_pass_cut_short_is_quiet():
    assert judge(NoGradMissing, [*MET, *STEP, *look() * 5], ended="interrupted") == []


def test_a_run_without_evaluation_is_not_observed():
    rule, run = NoGradMissing(), Progress()
    for event in [*MET, *STEP]:
        run.note(event)
        rule.observe(event, run)
    verdict = rule.verdict(run)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no evaluation of a trained model")


def test_one_call_on_a_whole_tensor_after_each_step_is_found_when_the_run_has_finished():
    (finding,) = judge(NoGradMissing, [*MET, *(STEP + look(None)) * 5])
    assert finding.primary.site == EVAL
    assert finding.confidence is Confidence.MEDIUM
    assert finding.primary.label.startswith("1 call, eval mode")
    assert (finding.seen.count, finding.seen.unit) == (5, "evaluations")
    assert finding.cost == "1 graph with its activations recorded in one evaluation and not used"


def test_one_call_of_a_loader_with_one_batch_is_found():
    (finding,) = judge(NoGradMissing, [*MET, *(STEP * 3 + look()) * 4])
    assert finding.confidence is Confidence.MEDIUM


def test_one_call_per_epoch_is_not_certain_in_a_run_that_was_interrupted():
    (finding,) = judge(NoGradMissing, [*MET, *(STEP * 4 + look(None)) * 3, *STEP * 3], ended="interrupted")
    assert finding.confidence is Confidence.LOW


def test_a_pass_over_a_loader_is_certain_when_training_has_gone_on():
    (finding,) = judge(NoGradMissing, [*MET, *(STEP + look() * 4), *STEP * 3], ended="interrupted")
    assert finding.confidence is Confidence.HIGH


def test_features_of_a_loader_that_each_loss_uses_are_not_certain():
    (finding,) = judge(NoGradMissing, [*MET, *STEP, *(look() * 4 + STEP) * 5])
    assert finding.confidence is Confidence.LOW


def test_targets_of_every_third_loss_are_not_certain():
    (finding,) = judge(NoGradMissing, [*MET, *STEP, *(look(None) + STEP * 3) * 5])
    assert finding.confidence is Confidence.LOW


def test_a_single_evaluation_of_one_call_is_too_little():
    assert judge(NoGradMissing, [*MET, *STEP * 5, *look(None)]) == []


def test_targets_made_in_eval_mode_for_the_next_backward_are_not_certain():
    step = [*look(None), *STEP]
    (finding,) = judge(NoGradMissing, [*MET, *STEP, *step * 6])
    assert finding.confidence is Confidence.LOW


def measure(use="compared", **more):
    return ModelCalled(model=1, site=EVAL, use=use, only_read=True, **more)


def test_results_that_are_only_compared_are_found_in_train_mode_and_before_a_later_backward_pass():
    looks = [measure(loader=1), measure(loader=1)]
    (finding,) = judge(NoGradMissing, [*MET, *([*STEP, *looks, BackwardEnded()]) * 3])
    assert (finding.confidence, finding.primary.site) == (Confidence.MEDIUM, EVAL)
    assert finding.primary.label.startswith("2 calls")
    assert finding.primary.label.endswith("train mode, gradients on")
    assert judge(NoGradMissing, [*MET, *STEP, measure("loss"), measure("loss"), *STEP]) == []


def test_calls_in_train_mode_without_a_loader_may_be_a_rollout():
    assert judge(NoGradMissing, [*MET, *([*STEP, measure(), measure(), BackwardEnded()]) * 3]) == []


def test_one_look_is_quiet_and_one_after_each_step_is_found_in_eval_mode_only():
    assert judge(NoGradMissing, [*MET, *STEP, measure(training=False)]) == []
    assert len(judge(NoGradMissing, [*MET, *([*STEP, measure(training=False)]) * 4])) == 1
    assert judge(NoGradMissing, [*MET, *([*STEP, measure()]) * 4]) == []


def test_a_prediction_that_is_read_as_a_number_is_quiet():
    assert judge(NoGradMissing, [*MET, *([*STEP, measure("read")]) * 5]) == []
