import pytest

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    ChoiceRead,
    Event,
    FunctionCalled,
    HandStepped,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    LoaderUnread,
    ModelCalled,
    ModelMet,
    NumberChosen,
    OptimizerStepped,
    PartUnused,
    RowsEvaluated,
    RunEnded,
    Site,
    WeightsKept,
)
from truestep.findings import Confidence
from truestep.rules.chosen_without_validation import ChosenWithoutValidation
from truestep.testing import judge

CHOICE, MADE, EVALUATED = Site("train.py", 30), Site("train.py", 5), Site("train.py", 20)
MET: list[Event] = [ModelMet(model=1, name="net", parameters=(1, 2))]
KEPT = WeightsKept(name="score", loss=False, greater=True, value=0.5, site=CHOICE)
UNUSED = PartUnused(name="valid", site=MADE)


def rows(**more):
    facts = {"table": "x", "samples": 100, "hits": 0, "inside": 100, "rows": 500, "seen": 300, "site": EVALUATED}
    return RowsEvaluated(model=1, **(facts | more))


def run(evaluation, *last, kept=3, how="finished"):
    """Return the events of epochs with an evaluation, after which weights are kept."""
    events = [*MET]
    called = [ModelCalled(model=1, site=EVALUATED, grad=False, tracked=False)]
    evaluation = called + evaluation if any(isinstance(one, RowsEvaluated) for one in evaluation) else evaluation
    for epoch in range(5):
        events += [BackwardEnded(site=Site("train.py", 12)), OptimizerStepped(optimizer=1), *evaluation]
        events += [KEPT] if epoch < kept else []
    return judge(ChosenWithoutValidation, [*events, *last, RunEnded(how=how)])


def loader(number, name):
    """Return the events of a pass of an evaluation over a loader."""
    return [
        LoaderMet(loader=number, name=name, dataset=number, batches=1, workers=0, sampler="sequential", site=MADE),
        LoaderStarted(loader=number, site=EVALUATED),
        BatchDrawn(loader=number),
        ModelCalled(model=1, site=EVALUATED, grad=False, tracked=False, loader=number),
        LoaderEnded(loader=number),
    ]


def test_a_choice_by_other_rows_beside_an_unused_part_is_found():
    (finding,) = run([rows()], UNUSED)
    assert (finding.primary.site, finding.confidence, finding.seen.count) == (CHOICE, Confidence.MEDIUM, 3)
    assert finding.message == "the best weights are chosen by samples of `x`, and `valid` is never read"
    assert [mark.site for mark in finding.related] == [MADE]


def test_a_choice_by_a_test_loader_beside_a_loader_that_is_never_read_is_found():
    (finding,) = run(loader(2, "test_loader"), LoaderUnread(name="val_loader", site=MADE))
    assert finding.message == "the best weights are chosen by samples of `test_loader`, and `val_loader` is never read"


def test_a_choice_by_training_rows_is_found():
    (finding,) = run([rows(hits=60)], UNUSED)
    assert (
        finding.message
        == "the best weights are chosen by samples that the model is trained on, and `valid` is never read"
    )


@pytest.mark.parametrize(
    ("evaluation", "last", "facts"),
    [
        ([rows()], [], {}),
        ([rows()], [PartUnused(name="test", site=MADE)], {}),
        ([rows()], [PartUnused(name="order", site=MADE)], {}),
        ([rows(table="x_val", hits=0)], [UNUSED], {}),
        ([rows(hits=30)], [UNUSED], {}),
        ([rows()], [LoaderUnread(name="val_loader", site=MADE)], {}),
        ([rows(), rows(table="", site=CHOICE)], [UNUSED], {}),
        ([rows()], [UNUSED], {"kept": 1}),
        ([rows()], [UNUSED], {"how": "crashed"}),
        (loader(2, "valid_loader"), [LoaderUnread(name="val_loader", site=MADE)], {}),
        ([], [UNUSED], {}),
    ],
    ids=[
        "two-parts",
        "unused-test",
        "unused-order",
        "validation",
        "some-training-rows",
        "a-table-beside-a-loader",
        "unknown-rows",
        "kept-once",
        "crashed",
        "other-loader",
        "no-evaluation",
    ],
)
def test_other_choices_are_quiet(evaluation, last, facts):
    assert run(evaluation, *last, **facts) == []


def passes(times):
    """Return the events of a training that reads its samples a number of times."""
    met = LoaderMet(loader=1, name="train", dataset=1, batches=1, workers=0, sampler="random", site=MADE)
    once = [LoaderStarted(loader=1, site=MADE), BatchDrawn(loader=1), BackwardEnded(site=MADE, loader=1)]
    return [met, *[*once, OptimizerStepped(optimizer=1), LoaderEnded(loader=1)] * times]


def test_a_choice_by_the_loss_of_the_training_is_found():
    read = ChoiceRead(name="self.best", by="train_loss", beside="val_loss", evaluations=6, site=CHOICE)
    (finding,) = judge(ChosenWithoutValidation, [*MET, *passes(2), read, RunEnded(how="finished")])
    assert finding.message == "the best weights are chosen by `train_loss`, and `val_loss` is not compared"
    assert finding.primary.site == CHOICE
    assert judge(ChosenWithoutValidation, [*MET, *passes(2), read, RunEnded(how="interrupted")]) == []
    assert judge(ChosenWithoutValidation, [*MET, *passes(1), read, RunEnded(how="finished")]) == []


def test_a_threshold_of_the_test_is_found_in_a_finished_run():
    chosen = NumberChosen(name="thr", by="y_test", site=CHOICE, figure=EVALUATED)
    (finding,) = judge(ChosenWithoutValidation, [*MET, chosen, RunEnded(how="finished")])
    assert finding.message == "`thr` is chosen by samples of the test, and a figure of them is computed with it"
    assert (finding.primary.site, finding.confidence) == (CHOICE, Confidence.MEDIUM)
    assert [mark.site for mark in finding.related] == [EVALUATED]
    assert judge(ChosenWithoutValidation, [*MET, chosen, RunEnded(how="interrupted")]) == []


def named(name="train_loss", beside="val_loss", value=0.5, site=CHOICE):
    return WeightsKept(name=name, loss=True, greater=False, value=value, best="best", beside=beside, site=site)


def kept_by_name(*kept, how="finished", times=1):
    """Return the findings of epochs with an evaluation over a loader, after which weights are kept."""
    events = [*MET]
    for one in kept:
        events += passes(times)
        events += [*loader(2, "val_loader"), one]
    return judge(ChosenWithoutValidation, [*events, RunEnded(how=how)])


def test_a_figure_with_the_name_of_the_training_is_found_beside_one_of_a_validation():
    (finding,) = kept_by_name(named(), named(value=0.4))
    assert finding.message == "the best weights are chosen by `train_loss`, and `val_loss` is not compared"
    assert (finding.primary.site, finding.primary.label) == (CHOICE, "`best` becomes `train_loss`")
    assert (finding.confidence, finding.seen.count) == (Confidence.MEDIUM, 2)


def test_a_figure_with_the_name_of_the_training_is_quiet_otherwise():
    assert kept_by_name(named()) == []
    assert kept_by_name(named(beside=""), named(beside="", value=0.4)) == []
    other = named("val_loss", "", site=Site("train.py", 34))
    assert kept_by_name(named(), other, named(value=0.4)) == []
    assert kept_by_name(named(), named(value=0.4), how="crashed") == []
    assert kept_by_name(named(), named(value=0.4), times=0) == []


def test_a_figure_with_the_name_of_the_test_is_found_beside_one_of_a_validation():
    (finding,) = kept_by_name(named("test_acc", "val_acc"), named("test_acc", "val_acc", 0.6), times=0)
    assert finding.message == "the best weights are chosen by `test_acc`, and `val_acc` is not compared"
    assert finding.cost == "the figure is the best of many on these samples, and not that on new ones"


OF_FUNCTIONS = """
for epoch in range(9):
    step(weights, x_train)
    score = evaluate(weights, x_test)
    if score > best:
        best, kept = score, [one.clone() for one in weights]
print(evaluate(kept, x_test))
"""


def by_test(tmp_path, *last):
    path = tmp_path / "train.py"
    path.write_text(OF_FUNCTIONS)
    kept = WeightsKept(name="score", loss=False, greater=True, value=0.5, site=Site(str(path), 5))
    called = FunctionCalled(model=1, tracked=False, grad=False, site=EVALUATED)
    events = [HandStepped(site=CHOICE, moved=1, mixed=0), called, kept] * 3
    return judge(ChosenWithoutValidation, [*MET, *events, *last, RunEnded(how="finished")])


def test_copies_that_the_test_chose_and_judges_are_found(tmp_path):
    (finding,) = by_test(tmp_path)
    assert finding.primary.site.line == 5
    assert [mark.site.line for mark in finding.related] == [7]


def test_copies_without_an_evaluation_behind_the_last_step_are_quiet(tmp_path):
    assert by_test(tmp_path, HandStepped(site=CHOICE, moved=1, mixed=0)) == []
