from truestep.events import (
    BackwardEnded,
    CheckpointLoaded,
    LoaderEnded,
    ModelCalled,
    ModelMet,
    ModeSet,
    OptimizerBuilt,
    OptimizerStepped,
    Site,
    StateLoaded,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.train_mode_not_restored import TrainModeNotRestored
from truestep.testing import judge

TRAIN, SWITCH, EVAL, LATER = (Site("train.py", line, 8) for line in (20, 28, 30, 50))
MET = [
    ModelMet(model=1, name="net", parameters=(1, 2), sensitive=("Dropout", "BatchNorm1d")),
    OptimizerBuilt(optimizer=1, parameters=(1, 2)),
    OptimizerBuilt(optimizer=2, parameters=(2,)),
    OptimizerBuilt(optimizer=3, parameters=(9,)),
]
OFF, ON = ModeSet(model=1, training=False, site=SWITCH), ModeSet(model=1, training=True)
LOOK = ModelCalled(model=1, site=EVAL, training=False, frozen_sensitive=True, grad=False, tracked=False)


def train(training=True, site=TRAIN, optimizer=1):
    kinds = ("Dropout", "BatchNorm1d") if training else ()
    call = ModelCalled(model=1, site=site, training=training, sensitive=kinds, frozen_sensitive=not training)
    return [call, BackwardEnded(), OptimizerStepped(optimizer=optimizer)]


def test_training_in_eval_mode_after_an_evaluation_is_found_at_the_training_call():
    (finding,) = judge(TrainModeNotRestored, [*MET, *train(), *train(), OFF, LOOK, *train(False) * 3])
    assert finding.primary.site == TRAIN
    assert finding.related[0].site == SWITCH
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (3, 5, 2)
    assert "net.train()" in finding.help
    assert "Dropout, BatchNorm1d" in finding.primary.label


def test_an_evaluation_with_gradients_on_counts_as_one():
    look = ModelCalled(model=1, site=EVAL, training=False, frozen_sensitive=True)
    events = [*MET, *train(), OFF, look, look, LoaderEnded(loader=2), *train(False) * 2]
    assert len(judge(TrainModeNotRestored, events)) == 1


def test_a_restored_mode_is_quiet():
    assert judge(TrainModeNotRestored, [*MET, *([*train(), OFF, LOOK, ON]) * 4]) == []


def test_training_in_eval_mode_from_the_start_is_found_if_the_weights_are_the_first_ones():
    events = [*MET, OFF, *([*train(False), LOOK]) * 4]
    (finding,) = judge(TrainModeNotRestored, events)
    assert finding.confidence is Confidence.MEDIUM
    assert (finding.primary.site, finding.related[0].site) == (SWITCH, TRAIN)
    assert (finding.seen.count, finding.seen.total) == (4, 4)
    (finding,) = judge(TrainModeNotRestored, [*events, CheckpointLoaded(), StateLoaded(model=1, parameters=(1, 2))])
    assert finding.confidence is Confidence.MEDIUM


def test_training_of_loaded_weights_in_eval_mode_is_of_low_confidence_and_never_clear():
    for load in (StateLoaded(model=1, parameters=(1, 2)), CheckpointLoaded()):
        events = [*MET, load, OFF, *([*train(False), LOOK]) * 4]
        (finding,) = judge(TrainModeNotRestored, events)
        assert finding.confidence is Confidence.LOW
    rule, run = TrainModeNotRestored(), Progress()
    for event in events:
        run.note(event)
        rule.observe(event, run)
        run.advance(event)
    assert (rule.verdict(run).outcome, rule.verdict(run).reason) == (Outcome.NOT_OBSERVED, "too little evidence")


def test_a_first_stage_in_eval_mode_is_quiet():
    assert judge(TrainModeNotRestored, [*MET, OFF, *train(False) * 4, ON, *train(site=LATER) * 4]) == []


def test_saliency_in_eval_mode_is_quiet():
    look = ModelCalled(model=1, site=TRAIN, training=False, frozen_sensitive=True)
    assert judge(TrainModeNotRestored, [*MET, *train(), OFF, LOOK, *[look, BackwardEnded()] * 5]) == []


def test_an_optimizer_of_the_input_is_quiet():
    assert judge(TrainModeNotRestored, [*MET, *train(), OFF, LOOK, *train(False, optimizer=3) * 5]) == []


def test_a_later_stage_in_eval_mode_is_quiet():
    head_only, own_line = train(False, optimizer=2), train(False, site=LATER)
    assert judge(TrainModeNotRestored, [*MET, *train(), OFF, LOOK, *head_only * 3, *own_line * 3]) == []


def test_eval_mode_without_an_evaluation_is_quiet():
    assert judge(TrainModeNotRestored, [*MET, *train(), OFF, *train(False) * 5]) == []


def test_adversarial_examples_made_in_eval_mode_are_quiet():
    attack = ModelCalled(model=1, site=TRAIN, training=False, frozen_sensitive=True)
    step = [OFF, attack, BackwardEnded(), ON, *train()]
    assert judge(TrainModeNotRestored, [*MET, *train(), OFF, LOOK, ON, *step * 4]) == []


def test_a_model_without_sensitive_layers_is_quiet():
    plain = [ModelCalled(model=1, site=TRAIN, training=False), BackwardEnded(), OptimizerStepped(optimizer=1)]
    assert judge(TrainModeNotRestored, [*MET, *train(), OFF, LOOK, *plain * 5]) == []


def test_a_run_that_never_sets_a_mode_is_not_observed():
    verdict = TrainModeNotRestored().verdict(Progress(met={ModelCalled, BackwardEnded, OptimizerStepped}))
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no call of train() or eval()")


def test_eval_mode_set_again_for_the_training_itself_is_quiet():
    assert judge(TrainModeNotRestored, [*MET, *train(), *[OFF, LOOK, OFF, *train(False) * 3] * 3]) == []


def turns(training, alone=()):
    """Return the events of two optimizers in turns: the first model is called once, before both steps."""
    first, own, other = train(training), [BackwardEnded(), OptimizerStepped(optimizer=1)], OptimizerStepped(optimizer=3)
    return [*first[:2], other, *alone, *own]


OTHER = ModelMet(model=2, name="judge", parameters=(9,))


def test_a_model_that_is_called_once_for_two_optimizers_is_found():
    evaluation = [OFF, LOOK]
    (finding,) = judge(TrainModeNotRestored, [*MET, OTHER, *turns(True) * 2, *evaluation, *turns(False) * 3])
    assert finding.primary.site == TRAIN
    assert judge(TrainModeNotRestored, [*MET, OTHER, *turns(True) * 2, *evaluation, ON, *turns(True) * 3]) == []


def test_calls_that_wait_for_a_step_end_with_the_mode():
    events = [*MET, OTHER, *turns(True) * 2, OFF, LOOK, *turns(False, alone=[ON, *train()[:1]]) * 3]
    assert judge(TrainModeNotRestored, events) == []


def test_an_optimizer_that_is_built_again_in_each_epoch_is_no_later_stage():
    made = Site("train.py", 12, 4)
    built = [OptimizerBuilt(optimizer=number, parameters=(1, 2), site=made) for number in (11, 12, 13)]
    first = [*MET[:1], built[0], *train(optimizer=11), OFF, LOOK, built[1], *train(False, optimizer=12) * 2]
    assert judge(TrainModeNotRestored, first) == []  # two stages may train in two modes
    (finding,) = judge(TrainModeNotRestored, [*first, LOOK, built[2], *train(False, optimizer=13) * 2])
    assert finding.primary.site == TRAIN
