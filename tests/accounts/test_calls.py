"""The account of calls on hand-built events: purpose and mode of each line that calls a model."""

from truestep.events import BackwardEnded, DrawsCompared, GradientsTaken, ModelCalled, ModelMet, Site
from truestep.rules import Progress

TRAIN, EVALUATE = Site("train.py", 20, 8), Site("train.py", 41, 8)
MET = ModelMet(model=1, name="model", kind="Net", sensitive=("Dropout",))
CALL = ModelCalled(model=1, site=TRAIN, sensitive=("Dropout",))
MADE = BackwardEnded(site=Site("train.py", 22, 8), observed=2, written=2)
STEP = [CALL, MADE]
SCORED = ModelCalled(model=1, site=EVALUATE, training=False, frozen_sensitive=True, grad=False, tracked=False)
GRAPH = ModelCalled(model=1, site=EVALUATE, training=False, frozen_sensitive=True)


def account(*events):
    run = Progress()
    for event in events:
        run.note(event)
    return run


def text(*events, name="calls"):
    entry = getattr(account(MET, *events), name).entry()
    return entry and entry.text


def test_a_loop_with_evaluations():
    epoch = [*STEP * 10, *[SCORED] * 4]
    assert text(*epoch * 3) == "30 training, train mode; 3 evaluations, eval mode, no gradients (train.py:41)"


def test_an_evaluation_with_gradients_records_graphs_that_are_not_used():
    epoch = [*STEP * 10, *[GRAPH] * 4]
    assert text(*epoch * 3) == "30 training, train mode; 3 evaluations, eval mode, unused graphs (train.py:41)"


def test_training_in_both_modes():
    off = ModelCalled(model=1, site=TRAIN, training=False, frozen_sensitive=True)
    assert text(*STEP * 10, *[off, MADE] * 20) == "10 training in train mode, 20 training in eval mode"


def test_layers_in_different_modes_are_both_modes():
    part = ModelCalled(model=1, site=TRAIN, sensitive=("Dropout",), frozen_sensitive=True)
    assert text(*[part, MADE] * 4) == "4 training, both modes"


def test_calls_for_each_step_are_no_evaluations():
    assert text(*[SCORED, *STEP] * 10) == "10 training, train mode; 10 other calls, eval mode, no gradients"


def test_a_model_without_training_is_fixed():
    teacher = ModelCalled(model=2, site=EVALUATE, training=False, grad=False, tracked=False)
    assert (
        text(*[teacher, *STEP] * 10)
        == "10 training, train mode; 10 calls of models without backward passes, eval mode, no gradients"
    )


def test_results_that_are_measured_are_evaluations_in_any_mode_and_of_any_model():
    rollout = ModelCalled(model=1, site=EVALUATE, grad=False, tracked=False)
    assert text(*[*STEP * 10, rollout] * 3) == "30 training, train mode; 3 other calls, train mode, no gradients"
    measured = ModelCalled(model=1, site=EVALUATE, use="compared", only_read=True)
    assert text(*[*STEP * 10, measured] * 3).endswith("; 3 evaluations, train mode, unused graphs (train.py:41)")
    average = ModelCalled(model=2, site=EVALUATE, grad=False, tracked=False, use="loss", only_read=True)
    assert text(*[*STEP, average] * 3).endswith("; 3 evaluations, train mode, no gradients (train.py:41)")


def test_one_line_for_training_and_evaluation_has_both():
    look = ModelCalled(model=1, site=TRAIN, training=False, frozen_sensitive=True, grad=False, tracked=False)
    line = "30 training, train mode; 3 evaluations, eval mode, no gradients (train.py:20)"
    assert text(*[*STEP * 10, look, look] * 3) == line


def test_a_part_of_a_trained_model_is_trained():
    whole = ModelMet(model=1, parameters=(1, 2))
    part = ModelMet(model=2, parameters=(2,))
    sample = ModelCalled(model=2, site=EVALUATE, training=False, grad=False, tracked=False)
    assert text(whole, part, *STEP * 10, sample).endswith("; 1 evaluation, eval mode, no gradients (train.py:41)")


def test_gradients_that_the_script_takes_use_a_call():
    assert text(*[CALL, GradientsTaken()] * 4) == "4 training, train mode"


def test_calls_in_eval_mode_with_a_common_backward_pass_are_training():
    assert text(*[CALL, GRAPH, MADE] * 4) == "4 training in train mode, 4 training in eval mode"


def test_counts_of_repeated_steps_are_added():
    run = account(MET)
    for event in STEP:
        run.note(event)
    run.repeat(run.cut(), 9)
    assert run.calls.entry().text == "10 training, train mode"


def test_dropout_in_training_only():
    epoch = [*STEP * 10, SCORED]
    assert text(*epoch * 3, name="randomness") == "dropout in training only"
    first, second = account(MET, *epoch * 3).randomness.entry().facts["dropout"]
    assert (first["model"], first["site"]["line"], first["by"], first["calls"]) == ("model", TRAIN.line, "layers", 30)
    assert (second["site"]["line"], second["by"], second["calls"]) == (EVALUATE.line, "off", 3)


def test_dropout_in_evaluation():
    noisy = ModelCalled(model=1, site=EVALUATE, sensitive=("Dropout",), grad=False, tracked=False, use="compared")
    assert text(*[*STEP * 10, noisy] * 3, name="randomness") == "dropout in training and evaluation"


def test_dropout_that_is_never_on():
    off = ModelCalled(model=1, site=TRAIN, training=False, frozen_sensitive=True)
    assert text(*[off, MADE] * 4, name="randomness") == "dropout off throughout"


def test_draws_in_eval_mode_that_are_no_dropout_layer():
    epoch = [*STEP * 10, SCORED, DrawsCompared(model=1, differ=True, site=EVALUATE)]
    assert text(*epoch * 3, name="randomness") == "dropout in training, other random draws do not follow the mode"
    samples = [ModelMet(model=1), ModelCalled(model=1), MADE, DrawsCompared(model=1, differ=True)]
    assert account(*samples).randomness.entry().text == "random draws that do not follow the mode"


def test_a_model_without_dropout_has_no_entry():
    run = account(ModelMet(model=1, sensitive=("BatchNorm1d",)), ModelCalled(model=1, sensitive=("BatchNorm1d",)), MADE)
    assert run.randomness.entry() is None
