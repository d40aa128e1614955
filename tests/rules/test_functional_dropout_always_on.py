from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    LoaderMet,
    LoaderStarted,
    ModelCalled,
    ModelMet,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.functional_dropout_always_on import FunctionalDropoutAlwaysOn
from truestep.testing import judge

DROP, CALL = Site("net.py", 8, 12), Site("train.py", 30, 12)
MET: list[Event] = [ModelMet(model=1, name="net"), LoaderMet(loader=2, name="val_loader")]
TRAIN: list[Event] = [
    BatchDrawn(loader=1),
    ModelCalled(model=1, loader=1),
    BackwardEnded(),
    OptimizerStepped(optimizer=1),
]
START, DRAWN = LoaderStarted(loader=2), BatchDrawn(loader=2)
NOISY = ModelCalled(model=1, site=CALL, training=False, grad=False, tracked=False, loader=2, dropout=DROP)
STILL = ModelCalled(model=1, site=CALL, training=False, grad=False, tracked=False, loader=2)
WHOLE = ModelCalled(model=1, site=CALL, training=False, grad=False, tracked=False, dropout=DROP)
PASS = [START, DRAWN, NOISY, DRAWN, NOISY]


def test_an_evaluation_with_dropout_is_found_at_the_line_of_the_dropout():
    (finding,) = judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN * 2, *PASS, *TRAIN, *PASS])
    assert finding.primary.site == DROP
    assert [mark.site for mark in finding.related] == [CALL]
    assert "2 batches of `val_loader`" in finding.related[0].label
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.first_step) == (2, 2)


def test_a_model_with_one_batch_hides_no_other_that_is_evaluated():
    other = ModelCalled(
        model=2, site=CALL, training=False, grad=False, tracked=False, loader=2, dropout=Site("b.py", 3)
    )
    train = [*TRAIN[:2], ModelCalled(model=2, loader=1), *TRAIN[2:]]
    (finding,) = judge(FunctionalDropoutAlwaysOn, [*MET, *train, START, DRAWN, other, DRAWN, NOISY, DRAWN, NOISY])
    assert finding.primary.site == DROP


def test_a_whole_tensor_that_comes_back_is_found():
    (finding,) = judge(FunctionalDropoutAlwaysOn, [*MET, *[*TRAIN, WHOLE] * 3])
    assert finding.confidence is Confidence.MEDIUM
    assert finding.seen.count == 2


def test_a_second_pass_over_the_same_data_is_still_an_evaluation():
    assert len(judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN, *PASS, *PASS])) == 1


def test_one_call_on_a_whole_tensor_is_quiet():
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN * 3, WHOLE]) == []


def test_a_batch_that_comes_several_times_is_quiet():
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN, START, *[DRAWN, NOISY, NOISY] * 4]) == []


def test_several_samples_of_each_prediction_excuse_every_evaluation():
    samples = [START, *[DRAWN, *[NOISY] * 5] * 3]
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN, *PASS, *TRAIN, *samples]) == []


def test_several_passes_excuse_every_evaluation():
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN, *PASS, *TRAIN, *PASS * 3]) == []


def test_several_calls_on_whole_tensors_are_quiet():
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *[*TRAIN, *[WHOLE] * 20] * 3]) == []


MEASURED = ModelCalled(model=1, site=CALL, training=False, grad=False, tracked=False, dropout=DROP, use="read")
AGAIN = ModelCalled(
    model=1, site=CALL, training=False, grad=False, tracked=False, dropout=DROP, use="read", same_input=True
)


def test_batches_without_a_loader_are_found_if_each_is_measured():
    (finding,) = judge(FunctionalDropoutAlwaysOn, [*MET, *[*TRAIN, *[MEASURED] * 4] * 3, *TRAIN, *[WHOLE] * 30])
    assert finding.confidence is Confidence.MEDIUM
    assert (finding.seen.count, finding.related[0].label) == (2, "4 batches in eval mode")


def test_one_input_that_is_measured_several_times_is_quiet():
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *[*TRAIN, MEASURED, *[AGAIN] * 4] * 3]) == []
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *[*TRAIN, MEASURED] * 3, *TRAIN, MEASURED, *[AGAIN] * 4]) == []


def test_a_model_that_is_evaluated_without_it_too_is_quiet():
    without = [START, DRAWN, STILL, DRAWN, STILL]
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN, *PASS, *TRAIN, *without]) == []
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN, *without, *TRAIN, *PASS]) == []


def test_a_model_that_was_not_trained_is_quiet():
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *PASS, *PASS]) == []


def test_an_evaluation_before_the_training_says_nothing():
    before = [START, DRAWN, STILL, DRAWN, STILL]
    assert len(judge(FunctionalDropoutAlwaysOn, [*MET, *before, *TRAIN, *PASS])) == 1


def test_a_run_that_was_cut_short_is_not_judged():
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN, *PASS], ended="interrupted") == []


def test_one_evaluation_with_dropout_is_not_clear():
    rule, run = FunctionalDropoutAlwaysOn(), Progress()
    for event in [*MET, *TRAIN * 3, WHOLE, RunEnded(how="finished")]:
        run.note(event)
        rule.observe(event, run)
    assert rule.verdict(run).outcome is Outcome.NOT_OBSERVED
    assert rule.verdict(run).reason == "dropout in an evaluation may be on purpose"


def test_a_run_without_an_evaluation_is_not_observed():
    run = Progress(met={ModelCalled, BackwardEnded})
    run.note(RunEnded(how="finished"))
    verdict = FunctionalDropoutAlwaysOn().verdict(run)
    assert verdict.outcome is Outcome.NOT_OBSERVED
    assert verdict.reason == "no call of a trained model in eval mode"


def test_a_dropout_that_says_true_is_found_in_one_evaluation_of_a_whole_tensor(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("x = F.dropout(x, 0.1, training=True)\nx = F.dropout(x, 0.1, training=self.training)\n")
    said = ModelCalled(model=1, site=CALL, training=False, grad=False, tracked=False, dropout=Site(str(path), 1, 4))
    (finding,) = judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN * 3, said])
    assert finding.confidence is Confidence.MEDIUM
    assert judge(FunctionalDropoutAlwaysOn, [*MET, *TRAIN * 3, *[said] * 20]) == []
