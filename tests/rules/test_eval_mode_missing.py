import pytest

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    ModelCalled,
    ModelMet,
    ModeSet,
    OptimizerBuilt,
    OptimizerStepped,
    ParametersUnchanged,
    Site,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.eval_mode_missing import EvalModeMissing
from truestep.testing import judge

TRAIN, EVAL, MODE = Site("train.py", 20, 8), Site("train.py", 30, 12), Site("train.py", 18, 4)
NET = ModelMet(model=1, name="net", parameters=(1, 2), sensitive=("Dropout",))
OTHER = ModelMet(model=2, name="critic", parameters=(3, 4))
LOADERS = [LoaderMet(loader=1, name="train_dl", dataset=1), LoaderMet(loader=2, name="val_dl", dataset=2)]
MET = [NET, OTHER, *LOADERS]
STEP = [BackwardEnded(), OptimizerStepped(optimizer=1)]


def train(loader=1, model=1, **more):
    call = ModelCalled(model=model, site=TRAIN, sensitive=("Dropout",), loader=loader, **more)
    return [*([BatchDrawn(loader=loader)] if loader else []), call, *STEP]


def gone(loader=None, model=1, training=True, **more):
    kinds = ("Dropout",) if training else ()
    return ModelCalled(
        model=model, site=EVAL, training=training, sensitive=kinds, grad=False, tracked=False, loader=loader, **more
    )


def evaluate(loader=2, batches=3, **more):
    events = [LoaderStarted(loader=loader)]
    for _ in range(batches):
        events += [BatchDrawn(loader=loader), gone(loader, **more)]
    return [*events, LoaderEnded(loader=loader)]


def test_evaluation_over_another_loader_in_train_mode_is_found_at_its_call():
    epoch = [ModeSet(model=1, training=True, site=MODE), *train(), *train(), *evaluate()]
    (finding,) = judge(EvalModeMissing, [*MET, *epoch, *epoch])
    assert finding.primary.site == EVAL
    assert finding.related[0].site == MODE
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.first_step) == (2, 2)
    assert "3 batches of `val_dl`" in finding.primary.label
    assert "net.eval()" in finding.help


def test_another_loader_over_the_same_dataset_is_found_with_medium_confidence():
    folds = [NET, LoaderMet(loader=1, dataset=1), LoaderMet(loader=2, dataset=1)]
    (finding,) = judge(EvalModeMissing, [*folds, *train(), *evaluate()])
    assert finding.confidence is Confidence.MEDIUM


def test_a_whole_tensor_that_comes_back_after_every_epoch_is_found():
    epoch = [*train(), *train(), *train(), gone()]
    (finding,) = judge(EvalModeMissing, [*MET, *epoch, *epoch, *epoch])
    assert finding.confidence is Confidence.MEDIUM
    assert (finding.seen.count, finding.seen.first_step) == (3, 3)


def test_a_whole_tensor_after_every_full_batch_step_is_found():
    assert judge(EvalModeMissing, [*MET, *([*train(loader=None), gone()]) * 4])


def test_evaluation_in_eval_mode_is_quiet():
    events = [*MET, *train(), *evaluate(training=False), *train(), gone(training=False)] * 3
    assert judge(EvalModeMissing, events) == []


def test_update_bn_is_quiet():
    assert judge(EvalModeMissing, [*MET, *train(), *evaluate(discarded=True)]) == []


def test_mc_dropout_is_quiet():
    over_and_over = [gone(2), gone(2, same_input=True), gone(2, same_input=True)]
    batch = [BatchDrawn(loader=2), *over_and_over]
    assert judge(EvalModeMissing, [*MET, *train(), *batch * 4]) == []


def test_a_switch_to_train_mode_for_the_pass_itself_is_quiet():
    off, on = ModeSet(model=1, training=False), ModeSet(model=1, training=True)
    events = [*MET, *train(), off, on, *evaluate(), *evaluate()]
    assert judge(EvalModeMissing, events) == []


def test_train_mode_that_is_set_again_where_eval_mode_was_meant_is_found():
    on = ModeSet(model=1, training=True, site=MODE)
    (finding,) = judge(EvalModeMissing, [*MET, on, *train(), *train(), on, *evaluate()] * 2)
    assert finding.related[0].site == MODE


def test_one_evaluation_in_each_mode_is_a_comparison():
    on, off = ModeSet(model=1, training=True), ModeSet(model=1, training=False)
    both = [on, *evaluate(), off, *evaluate(training=False)]
    assert judge(EvalModeMissing, [*MET, on, *train(), *train(), *both]) == []


def test_an_evaluation_in_eval_mode_hides_none_for_which_no_mode_was_set():
    on, off = ModeSet(model=1, training=True), ModeSet(model=1, training=False)
    validated = [*evaluate(), on, off, *evaluate(training=False)]
    assert judge(EvalModeMissing, [*MET, on, *train(), *train(), *validated])


def test_an_evaluation_before_the_first_step_on_the_data_of_the_later_ones_does_not_hide_them():
    evaluation = [gone(known_input=True)]
    events = [*MET, gone(), *train(), *train(), *evaluation, *train(), *train(), *evaluation]
    (finding,) = judge(EvalModeMissing, events)
    assert finding.confidence is Confidence.MEDIUM


def test_targets_from_the_same_tensor_for_each_step_are_quiet():
    target = [gone(), *train(loader=None)]
    assert judge(EvalModeMissing, [*MET, *target, *[gone(known_input=True), *train(loader=None)] * 6]) == []


def test_pseudo_labels_from_the_batch_of_the_step_are_quiet():
    labels = [BatchDrawn(loader=1), BatchDrawn(loader=2), gone(2), gone(2)]
    step = [*labels, ModelCalled(model=1, site=TRAIN, sensitive=("Dropout",), loader=2), *STEP]
    assert judge(EvalModeMissing, [*MET, *step * 6]) == []


def test_pseudo_labels_after_a_warm_up_are_quiet():
    step = [gone(), ModelCalled(model=1, site=TRAIN, sensitive=("Dropout",)), *STEP]
    assert judge(EvalModeMissing, [*MET, *train(None) * 5, *step * 6]) == []


def test_rollouts_are_quiet():
    episode = [*[gone()] * 5, *train(loader=None), *train(loader=None)]
    assert judge(EvalModeMissing, [*MET, *episode * 5]) == []


def test_a_momentum_encoder_that_is_never_trained_is_quiet():
    step = [BatchDrawn(loader=1), gone(1, model=2), *train()]
    assert judge(EvalModeMissing, [*MET, *step * 6, *evaluate(model=2)]) == []


def test_samples_of_a_generator_in_train_mode_are_quiet():
    critic = [gone(1), ModelCalled(model=2, loader=1), BackwardEnded(), OptimizerStepped(optimizer=2)]
    generator = [ModelCalled(model=1, sensitive=("BatchNorm2d",), loader=1), ModelCalled(model=2, loader=1), *STEP]
    events = [*MET, *(critic + generator) * 3, *evaluate(), *(critic + generator) * 3, gone()] * 2
    assert judge(EvalModeMissing, events) == []


def test_a_second_look_at_the_training_input_is_quiet():
    step = [*train(loader=None), gone(same_input=True)]
    assert judge(EvalModeMissing, [*MET, *step * 5]) == []


def test_one_test_at_the_end_on_a_whole_tensor_is_found():
    (finding,) = judge(EvalModeMissing, [*MET, *train() * 12, gone()])
    assert (finding.primary.site, finding.confidence) == (EVAL, Confidence.MEDIUM)


def test_one_pass_at_the_end_of_a_model_that_is_also_evaluated_in_eval_mode_is_quiet():
    assert judge(EvalModeMissing, [*MET, *train() * 12, gone(training=False), gone()]) == []


def test_one_test_after_a_few_steps_is_quiet():
    assert judge(EvalModeMissing, [*MET, *train(), *train(), gone()]) == []


def test_a_model_without_sensitive_layers_is_quiet():
    plain = ModelCalled(model=1, site=EVAL, grad=False, tracked=False, loader=2)
    drawn = [BatchDrawn(loader=2), plain]
    assert judge(EvalModeMissing, [*MET, *train(), *drawn * 4]) == []


NO_EVALUATION = "no evaluation of a trained model with layers that depend on the mode"


@pytest.mark.parametrize(("events", "reason"), [([], "no model call"), (train(), NO_EVALUATION)])
def test_a_run_without_evaluation_is_not_observed(events, reason):
    rule, run = EvalModeMissing(), Progress()
    for event in events:
        run.note(event)
        rule.observe(event, run)
    verdict = rule.verdict(run)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, reason)


def test_one_call_is_enough_if_its_result_is_compared_with_targets():
    (finding,) = judge(EvalModeMissing, [*MET, *train(None), gone(use="compared")])
    assert (finding.confidence, finding.primary.site) == (Confidence.MEDIUM, EVAL)
    (finding,) = judge(EvalModeMissing, [*MET, *train(None), gone(use="compared", same_input=True)])
    assert finding.seen.count == 1


def test_an_average_that_no_backward_pass_trains_is_measured_too():
    average = ModelMet(model=3, name="ema", sensitive=("BatchNorm1d",))
    (finding,) = judge(EvalModeMissing, [*MET, average, *train(), gone(model=3, use="loss", only_read=True)])
    assert "`ema` was evaluated in train mode" in finding.message
    assert judge(EvalModeMissing, [*MET, average, gone(model=3, use="compared"), *train()]) == []


def test_a_measurement_that_records_graphs_is_found():
    call = ModelCalled(model=1, site=EVAL, sensitive=("Dropout",), use="compared", only_read=True)
    assert len(judge(EvalModeMissing, [*MET, *train(), call, *train()])) == 1
    logged = ModelCalled(model=1, site=EVAL, sensitive=("Dropout",), use="compared")
    assert judge(EvalModeMissing, [*MET, *train(), logged, *STEP]) == []


def test_samples_of_one_input_are_quiet_also_if_they_are_compared():
    samples = [gone(use="compared"), *[gone(use="compared", same_input=True)] * 9]
    assert judge(EvalModeMissing, [*MET, *train(), *samples]) == []


def test_the_loss_of_the_training_input_at_another_step_size_is_quiet():
    look = gone(use="loss", only_read=True, same_input=True)
    assert judge(EvalModeMissing, [*MET, *([*train(), look, look]) * 4]) == []


def serving(steps, *, model=3, after=(), **more):
    call = gone(model=model, **more)
    return [event for _ in range(steps) for event in (call, *train(), *after)]


TEACHER = ModelMet(model=3, name="teacher", parameters=(7, 8), sensitive=("Dropout",))


def test_a_fixed_model_in_train_mode_that_serves_a_training_is_found():
    still = ParametersUnchanged(parameters=(7, 8), steps=10)
    events = [*MET, TEACHER, *serving(10), still, *serving(10), gone(model=3, training=False)]
    (finding,) = judge(EvalModeMissing, events)
    assert finding.message == "`teacher`, which is not trained, serves the training of another model in train mode"
    assert (finding.confidence, finding.primary.site, finding.seen.count) == (Confidence.MEDIUM, EVAL, 19)


def test_a_model_with_values_that_were_not_read_may_be_an_average():
    assert judge(EvalModeMissing, [*MET, TEACHER, *serving(20)]) == []
    early = ParametersUnchanged(parameters=(7, 8), steps=3)
    assert judge(EvalModeMissing, [*MET, *[*train()] * 3, early, TEACHER, *serving(20)]) == []


def test_few_steps_averages_and_models_with_steps_of_their_own_are_quiet():
    still = ParametersUnchanged(parameters=(7, 8), steps=20)
    assert judge(EvalModeMissing, [*MET, TEACHER, *serving(8), still]) == []
    moved = ParametersUnchanged(parameters=(), moved=(7, 8), steps=20)
    assert judge(EvalModeMissing, [*MET, TEACHER, *serving(20), moved]) == []
    own = [OptimizerBuilt(optimizer=2, parameters=(7, 8)), *serving(20, after=[OptimizerStepped(optimizer=2)])]
    assert judge(EvalModeMissing, [*MET, TEACHER, *own, still]) == []
