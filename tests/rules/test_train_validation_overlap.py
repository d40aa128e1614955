import pytest

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    CheckSkipped,
    CopiesEvaluated,
    FoldContinued,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    LoaderUnread,
    ModelCalled,
    OptimizerBuilt,
    OptimizerStepped,
    RowsEvaluated,
    RowsUnread,
    RunEnded,
    SamplesShared,
    SelectionsShared,
    Site,
    WindowsShared,
)
from truestep.findings import Confidence, Outcome
from truestep.rules._rule import Progress
from truestep.rules.train_validation_overlap import TrainValidationOverlap
from truestep.testing import judge

TRAINING, EVALUATION = Site("train.py", 30), Site("train.py", 40)
MET = [
    LoaderMet(loader=1, name="train", site=TRAINING),
    LoaderMet(loader=2, name="val", site=Site("train.py", 31)),
    LoaderMet(loader=3, name="test", site=Site("train.py", 32)),
]
TRAINED = [ModelCalled(model=1, loader=1), OptimizerStepped(optimizer=1), LoaderStarted(loader=2, site=EVALUATION)]
CALLED = ModelCalled(model=1, loader=2, grad=False, tracked=False)
FACTS = {"samples": 100, "shared": 80, "outside": 20, "beyond": 320}


def shared(loader=2, **facts):
    return SamplesShared(loader=loader, model=1, trained=(1,), **{**FACTS, **facts})


def found(*events):
    return judge(TrainValidationOverlap, [*MET, *TRAINED, CALLED, *events])


def test_the_evaluation_is_named_at_its_loop():
    (finding,) = found(shared())
    assert finding.primary.site == EVALUATION
    assert finding.related[0].site == TRAINING
    assert finding.message == "80 of the 100 samples of `val` were trained on"
    assert finding.cost == "80 samples are training samples (compared by index), 20 are not"


@pytest.mark.parametrize(
    "facts",
    [
        {"beyond": 0},
        {"shared": 9, "outside": 91},
        {"samples": 15, "shared": 12, "outside": 3},
        {"by_value": True, "shared": 19, "outside": 81},
        {"by_value": True, "shared": 60, "outside": 40, "repeated": 7},
        {"later": True},
    ],
    ids=["all-samples", "few", "tiny", "few-equal", "repeat-by-nature", "later"],
)
def test_another_mixture_is_quiet(facts):
    assert found(shared(**facts)) == []


WHOLE = {"shared": 100, "outside": 0}


def test_a_loader_with_a_name_of_held_out_samples_is_found_if_all_were_trained_on():
    met = LoaderMet(loader=5, name="val_loader", site=Site("train.py", 33))
    events = [*MET, met, *TRAINED, ModelCalled(model=1, loader=5, tracked=False)]
    (finding,) = judge(TrainValidationOverlap, [*events, shared(5, **WHOLE)])
    assert finding.message == "100 of the 100 samples of `val_loader` were trained on"
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("loader", WHOLE),
        ("loader", {"shared": 99, "outside": 1}),
        ("train_val_loader", WHOLE),
        ("val_loader", WHOLE | {"beyond": 0}),
    ],
    ids=["training accuracy", "all but one", "on purpose", "all training samples"],
)
def test_an_evaluation_of_training_samples_is_quiet(name, facts):
    met = LoaderMet(loader=5, name=name, site=Site("train.py", 33))
    called = ModelCalled(model=1, loader=5, tracked=False)
    assert judge(TrainValidationOverlap, [*MET, met, *TRAINED, called, shared(5, **facts)]) == []


def test_an_evaluation_on_exactly_the_training_samples_is_found_beside_a_clean_one():
    same, clean = shared(**WHOLE | {"beyond": 0}), shared(3, shared=0, outside=100, beyond=100)
    called = ModelCalled(model=1, loader=3, tracked=False)
    (finding,) = found(same, called, clean)
    assert finding.message == "100 of the 100 samples of `val` were trained on"
    assert found(same) == []
    other = LoaderMet(loader=5, name="train_eval_loader", site=Site("train.py", 33))
    assert found(other, shared(5, **WHOLE | {"beyond": 0}), called, clean) == []


@pytest.mark.parametrize(
    ("dataset", "facts", "is_found"),
    [
        (5, {"by_value": True}, True),
        (5, {}, False),
        (1, {"by_value": True}, False),
        (-5, {"by_value": True}, False),
        (5, {"by_value": True, "repeated": 11}, False),
        (5, {"by_value": True, "samples": 63}, False),
    ],
    ids=["its own", "the same arrays", "that of the training", "unknown", "equal by chance", "few"],
)
def test_an_evaluation_on_training_samples_that_were_loaded_again_is_found(dataset, facts, is_found):
    held_out = LoaderMet(loader=5, name="val_loader", dataset=dataset, dataset_kind="TensorDataset")
    loaders = [LoaderMet(loader=1, name="train", dataset=1), held_out]
    glimpse = [LoaderStarted(loader=5, site=Site("train.py", 3)), BatchDrawn(loader=5)]
    called = [LoaderStarted(loader=5, site=EVALUATION), ModelCalled(model=1, loader=5, tracked=False)]
    whole = WHOLE | {"beyond": 0} | facts
    same = shared(5, **whole | {"shared": whole.get("samples", 100)})
    findings = judge(TrainValidationOverlap, [MET[0], *loaders, *glimpse, *TRAINED, *called, same])
    assert [one.primary.site for one in findings] == [EVALUATION] * is_found
    other = ModelCalled(model=1, loader=7, tracked=False)
    assert judge(TrainValidationOverlap, [MET[0], *loaders, *TRAINED, *called, other, same]) == []


def test_an_evaluation_on_the_training_part_of_a_data_set_is_found():
    part = LoaderMet(loader=5, name="val_loader", dataset=5, dataset_kind="Subset", site=Site("train.py", 33))
    called = [LoaderStarted(loader=5, site=EVALUATION), ModelCalled(model=1, loader=5, tracked=False)]
    loaders = [LoaderMet(loader=1, name="train", dataset=1), part]
    same = shared(5, **WHOLE | {"beyond": 0})
    assert len(judge(TrainValidationOverlap, [MET[0], *loaders, *TRAINED, *called, same])) == 1


BUILT = [OptimizerBuilt(optimizer=number, parameters=(1,), site=Site("train.py", 20)) for number in (1, 2, 3)]


def folds(*facts):
    """Return the events of folds, each with a new loader of one line."""
    events = []
    for number, one in enumerate(facts):
        loader = LoaderMet(loader=10 + number, name="val", site=Site("train.py", 31))
        clean = {"shared": 0, "outside": 0, "beyond": 300}
        events += [loader, BUILT[number], *TRAINED, shared(10 + number, **(clean | one))]
    return judge(TrainValidationOverlap, [*MET, *events])


def test_folds_that_go_on_with_the_same_weights_are_found_at_the_optimizer():
    (finding,) = folds({}, {"earlier": 100}, {"earlier": 100})
    assert finding.primary.site == BUILT[0].site
    assert finding.message.startswith("folds go on with the weights of the fold before")
    assert finding.seen.count == 2


@pytest.mark.parametrize(
    "facts",
    [
        ({}, {}, {}),
        ({}, {"earlier": 40}, {"earlier": 60}),
        ({"shared": 100}, {"earlier": 100}, {"earlier": 100}),
        ({}, {"earlier": 100, "shared": 90}),
        ({"samples": 12}, {"samples": 12, "earlier": 12}),
    ],
    ids=["new weights", "in part", "tasks in turn", "trained on now too", "tiny"],
)
def test_other_folds_are_quiet(facts):
    assert folds(*facts) == []


def on_the_training_loader(*unread, loader=1):
    number = {"loader": loader}
    training = [LoaderStarted(**number), BatchDrawn(**number), ModelCalled(model=1, **number)]
    training += [BackwardEnded(written=1, **number), LoaderEnded(**number), OptimizerStepped(optimizer=1)]
    called = ModelCalled(model=1, loader=1, grad=False, tracked=False)
    evaluation = [LoaderStarted(loader=1, site=EVALUATION), BatchDrawn(loader=1), called, LoaderEnded(loader=1)]
    return judge(TrainValidationOverlap, [*MET, *training, *evaluation, *unread])


def test_an_evaluation_on_the_training_loader_is_found_if_that_of_a_test_is_never_read():
    (finding,) = on_the_training_loader(LoaderUnread(name="test_loader", site=Site("train.py", 12)))
    assert finding.primary.site == EVALUATION
    assert finding.message.endswith("and `test_loader` is never read")


def test_other_evaluations_beside_an_unread_loader_are_quiet():
    assert on_the_training_loader() == []
    assert on_the_training_loader(LoaderUnread(name="loader")) == []
    assert on_the_training_loader(LoaderUnread(name="test_loader"), loader=3) == []


def test_equal_samples_that_do_not_repeat_by_nature_are_found():
    (finding,) = found(shared(by_value=True, shared=60, outside=40, repeated=1))
    assert finding.cost == "60 samples are training samples (compared by value), 40 are not"


def test_another_evaluation_on_samples_of_its_own_is_an_excuse_for_a_mixture_without_a_name():
    clean = shared(3, shared=0, outside=100)
    assert found(LoaderMet(loader=4, name="mixture"), shared(4), clean) == []
    (finding,) = found(shared(), clean)
    assert finding.message == "80 of the 100 samples of `val` were trained on"


def test_an_evaluation_that_was_clean_before_its_samples_were_trained_on_is_no_excuse():
    first, second = shared(3, shared=0, outside=100), shared(3, later=True)
    assert len(found(first, shared(), second)) == 1


@pytest.mark.parametrize("loader", [3, None])
def test_an_evaluation_without_a_name_is_quiet_beside_one_that_could_not_be_compared(loader):
    unnamed = [MET[0], LoaderMet(loader=2, name="part"), MET[2], *TRAINED, CALLED, shared()]
    other = ModelCalled(model=1, loader=loader, grad=False, tracked=False)
    assert judge(TrainValidationOverlap, [*unnamed, other]) == []
    assert len(judge(TrainValidationOverlap, unnamed)) == 1


def test_a_loader_made_again_in_each_epoch_is_the_same_evaluation():
    again = [LoaderMet(loader=4, name="val", site=MET[1].site), ModelCalled(model=1, loader=4, tracked=False)]
    assert len(found(shared(), *again)) == 1


def test_a_run_that_was_cut_short_is_quiet():
    rule, run = TrainValidationOverlap(), Progress()
    for event in [*MET, *TRAINED, CALLED, shared()]:
        run.note(event)
        rule.observe(event, run)
    assert rule.findings(run) == []


def test_what_was_skipped_is_not_observed():
    rule, run = TrainValidationOverlap(), Progress()
    assert rule.verdict(run).reason == SamplesShared.absent
    rule.observe(CheckSkipped(check="overlap", reason="the evaluation data were not compared"), run)
    assert rule.verdict(run).reason == "the evaluation data were not compared"
    run.note(shared())
    run.note(RunEnded(how="finished"))
    assert rule.verdict(run).outcome is Outcome.CLEAR


ROWS = {"table": "x_val", "samples": 150, "hits": 70, "inside": 150, "trained": "x_train", "rows": 450, "seen": 225}
SPLIT = Site("train.py", 7)


def rows(*, steps=20, unread="x", unused=False, **facts):
    left = [RowsUnread(table=unread, unused=unused)] if unread else []
    read = RowsEvaluated(model=1, site=EVALUATION, made=SPLIT, **{**ROWS, "own": True, **facts})
    return [*[OptimizerStepped(optimizer=1)] * steps, ModelCalled(model=1, tracked=False, site=EVALUATION), read, *left]


def test_training_rows_in_another_array_are_named_at_the_split():
    (finding,) = judge(TrainValidationOverlap, rows())
    assert finding.primary.site == SPLIT
    assert finding.message == "150 of the 150 samples of `x_val` were trained on"
    assert finding.cost.endswith("nothing reads the other rows of `x`")


def test_training_rows_in_an_array_with_the_name_of_held_out_rows_are_found():
    (finding,) = judge(TrainValidationOverlap, rows(unread=""))
    assert finding.message == "150 of the 150 samples of `x_val` were trained on"
    assert finding.cost == "of these rows, 70 were in the batches of the steps that were read"


def test_a_validation_on_training_samples_is_found_beside_a_clean_test():
    loaders = [LoaderMet(loader=5, name="val_loader", site=Site("train.py", 33))]
    loaders += [LoaderMet(loader=6, name="test_loader", site=Site("train.py", 34))]
    clean = shared(6, samples=100, shared=0, outside=100)
    called = [ModelCalled(model=1, loader=number, tracked=False) for number in (5, 6)]
    (finding,) = judge(TrainValidationOverlap, [*MET, *loaders, *TRAINED, *called, shared(5, **WHOLE), clean])
    assert finding.message == "100 of the 100 samples of `val_loader` were trained on"


def test_a_validation_in_which_a_part_was_trained_on_is_found_beside_a_test_that_was_not_compared():
    loaders = [LoaderMet(loader=5, name="val_loader"), LoaderMet(loader=6, name="test_loader")]
    called = [ModelCalled(model=1, loader=number, tracked=False) for number in (5, 6)]
    (finding,) = judge(TrainValidationOverlap, [*MET, *loaders, *TRAINED, *called, shared(5)])
    assert finding.message == "80 of the 100 samples of `val_loader` were trained on"
    loaders[0] = LoaderMet(loader=5, name="part")
    assert judge(TrainValidationOverlap, [*MET, *loaders, *TRAINED, *called, shared(5)]) == []


def test_an_evaluation_that_is_not_compared_is_not_observed():
    rule, run = TrainValidationOverlap(), Progress()
    for event in [RowsEvaluated(model=1, site=EVALUATION, table="images", samples=128), RunEnded(how="finished")]:
        run.note(event)
        rule.observe(event, run)
    assert rule.verdict(run).outcome is Outcome.NOT_OBSERVED


def test_rows_that_are_training_rows_in_part_are_named():
    (finding,) = judge(TrainValidationOverlap, rows(samples=300, unread=""))
    assert finding.message.startswith("140 of the 300")


@pytest.mark.parametrize(
    "facts",
    [
        {"unread": "", "table": "x_part"},
        {"unread": "", "table": "x_train_eval"},
        {"own": False},
        {"hits": 0},
        {"inside": 0, "hits": 0},
        {"samples": 15, "inside": 15, "hits": 12},
        {"steps": 4},
        {"samples": 600, "inside": 445, "unread": ""},
    ],
    ids=[
        "training-accuracy",
        "of-training",
        "the-training-array",
        "other-rows",
        "another-table",
        "few",
        "each-step",
        "all-rows",
    ],
)
def test_other_evaluations_on_rows_are_quiet(facts):
    assert judge(TrainValidationOverlap, rows(**facts)) == []


def test_a_part_of_a_split_that_no_statement_reads_is_enough():
    assert judge(TrainValidationOverlap, rows(own=False, unused=True)) != []


def test_a_clean_evaluation_on_rows_silences_one_without_a_name():
    clean = RowsEvaluated(model=1, site=Site("train.py", 60), table="x_test", samples=100, seen=225)
    assert judge(TrainValidationOverlap, [*rows(), clean]) == []


def test_a_line_that_was_evaluated_on_training_rows_once_is_not_observed():
    rule, run = TrainValidationOverlap(), Progress()
    trained = [one for one in rows(table="part", unread="") if not isinstance(one, OptimizerStepped)]
    steps = [OptimizerStepped(optimizer=1)] * 20
    other = RowsEvaluated(model=1, site=EVALUATION, table="part", samples=150, seen=225)
    for event in [*steps, *trained, *steps, trained[0], other, RunEnded(how="finished")]:
        run.note(event)
        rule.observe(event, run)
    assert rule.verdict(run).reason == "an evaluation on training samples, which can be meant"


def again(*more, **facts):
    whole = {"table": "test_features", "samples": 150, "rows": 150, "hits": 100, "seen": 100, "wide": True}
    return judge(TrainValidationOverlap, [*rows(unread="", **{**whole, **facts}), *more])


def test_the_table_of_the_training_in_another_array_with_the_name_of_a_test_is_found():
    (finding,) = again()
    assert finding.message == "150 of the 150 samples of `test_features` were trained on"
    other = RowsEvaluated(model=2, site=Site("train.py", 60), table="gallery", samples=600)
    assert again(other)


@pytest.mark.parametrize(
    "facts",
    [
        {"own": False},
        {"wide": False},
        {"table": "features"},
        {"table": "eval_features"},
        {"rows": 150, "inside": 149},
        {"samples": 60, "rows": 60, "inside": 60},
    ],
)
def test_other_arrays_with_all_rows_of_the_training_are_quiet(facts):
    assert again(**facts) == []


def selections(*more, how="finished", **facts):
    both = {"one": "val_mask", "other": "test_mask", "parts": ("validation", "test"), "rows": (200, 840)}
    facts = {**both, "shared": 200, "stretches": 160, "chosen": True, "site": SPLIT, "made": EVALUATION, **facts}
    event = SelectionsShared(**facts)
    return judge(TrainValidationOverlap, [*more, event, *[OptimizerStepped(optimizer=1)] * 20, RunEnded(how=how)])


def test_a_test_mask_with_the_rows_that_choose_the_weights_is_found():
    (finding,) = selections()
    assert finding.message == "200 of the 840 rows of `test_mask` are in `val_mask`, too"
    assert (finding.primary.site, [mark.site for mark in finding.related]) == (SPLIT, [EVALUATION])
    assert finding.confidence is Confidence.MEDIUM
    assert selections(CALLED)


TRAIN = {"one": "train", "other": "val", "parts": ("train", "validation"), "rows": (400, 200), "shared": 90}


def test_masks_of_training_and_validation_with_a_part_in_common_are_found_without_a_module():
    (finding,) = selections(**TRAIN, chosen=False)
    assert finding.cost.startswith("rows that are trained on")
    assert not selections(CALLED, **TRAIN)


@pytest.mark.parametrize(
    "facts",
    [
        {"chosen": False},
        {"rows": (200, 200)},
        {"rows": (200, 4000)},
        {"shared": 100, "stretches": 1},
        {"shared": 100, "stretches": 12},
        {"rows": (9, 30), "shared": 9},
        {**TRAIN, "shared": 200},
        {"how": "failed"},
    ],
)
def test_selections_that_are_meant_to_share_rows_are_quiet(facts):
    assert selections(**facts) == []


def test_a_loop_over_folds_that_goes_on_with_its_weights_is_found_at_the_optimizer():
    built = OptimizerBuilt(optimizer=2, site=Site("train.py", 12))
    events = [*MET, *TRAINED, CALLED, built, FoldContinued(optimizer=2, site=Site("train.py", 20))]
    (finding,) = judge(TrainValidationOverlap, [*events, RunEnded(how="finished")])
    assert finding.primary.site == built.site
    assert "folds go on with the weights of the fold before" in finding.message
    assert not judge(TrainValidationOverlap, [*MET, *TRAINED, built, events[-1], RunEnded(how="finished")])


def test_samples_that_repeat_by_nature_are_no_overlap_of_a_held_out_loader():
    whole = {"samples": 100, "shared": 100, "outside": 0, "by_value": True}
    assert found(shared(**whole))
    assert not found(shared(**whole, repeated=11))


def copied(hits: int, rows: int = 1000, samples: int = 400, table: str = "x_test"):
    read = RowsEvaluated(
        model=1,
        site=EVALUATION,
        table=table,
        samples=samples,
        hits=hits,
        inside=hits,
        rows=rows,
        seen=rows,
        copies=True,
    )
    steps = [OptimizerStepped(optimizer=1)] * 20
    return judge(TrainValidationOverlap, [*steps, read, RunEnded(how="finished")])


def test_an_evaluation_on_copies_of_training_rows_is_found():
    (finding,) = copied(40)
    assert finding.message == "40 of the 400 samples of `x_test` are equal to samples that were trained on"
    assert finding.primary.site == EVALUATION


@pytest.mark.parametrize(
    "facts",
    [
        {"hits": 10},
        {"hits": 390},
        {"hits": 60, "rows": 90},
        {"hits": 19, "samples": 60},
        {"hits": 40, "table": "states"},
        {"hits": 40, "table": "x_train"},
    ],
    ids=["few of them", "nearly all of them", "of few rows", "few", "another name", "the training"],
)
def test_a_few_equal_rows_and_an_evaluation_of_the_training_are_quiet(facts):
    assert copied(**facts) == []


def windows(shared: int, expected: float, site: Site = EVALUATION, **more):
    facts = {"model": 1, "table": "x_test", "trained": "x_train", "samples": 200, "made": TRAINING}
    return WindowsShared(**facts | more, shared=shared, expected=expected, site=site)


def continued(*events):
    steps = [OptimizerStepped(optimizer=1)] * 20
    return judge(TrainValidationOverlap, [*MET, *steps, *events, RunEnded(how="finished")])


def test_windows_whose_targets_are_in_windows_of_the_training_are_found():
    (finding,) = continued(windows(160, 200.0))
    assert finding.message.startswith("80% of the targets of `x_test` are in windows of the training")
    assert (finding.primary.site, finding.related[0].site) == (TRAINING, EVALUATION)
    (finding,) = continued(windows(160, 200.0, loader=2, made=None))
    assert (finding.primary.site, "`val`" in finding.message) == (MET[1].site, True)


def test_a_later_evaluation_and_few_such_windows_are_quiet():
    assert continued(windows(12, 200.0), windows(12, 20.0)) == []
    assert continued(windows(160, 200.0), windows(1, 150.0, Site("train.py", 50))) == []
    assert continued(windows(90, 200.0)) == []
    assert continued(windows(19, 20.0, samples=20)) == []


FILLED = {"samples": 760, "compared": 96, "hits": 90, "clumps": 80, "others": 750, "free": 96}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, True),
        ({"between": True, "samples": 300, "hits": 50, "clumps": 0}, True),
        ({"free_hits": 40}, False),
        ({"samples": 300}, False),
        ({"clumps": 12}, False),
        ({"hits": 40}, False),
        ({"between": True, "hits": 20}, False),
    ],
    ids=["copies", "between", "in all classes", "of another size", "few groups", "few copies", "few between"],
)
def test_a_class_that_was_filled_up_before_the_split_is_found(facts, found):
    read = CopiesEvaluated(model=1, table="x_test", site=EVALUATION, made=SPLIT, **{**FILLED, **facts})
    assert len(judge(TrainValidationOverlap, [read, RunEnded(how="finished")])) == found
