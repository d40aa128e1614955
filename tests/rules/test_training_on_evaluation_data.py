"""A loader that is never read, and another one that is both trained on and evaluated."""

import pytest

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    CheckpointLoaded,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    LoaderUnread,
    ModelCalled,
    ResultRowsScored,
    RunEnded,
    Site,
)
from truestep.rules.training_on_evaluation_data import TrainingOnEvaluationData
from truestep.testing import judge

LOOP, EVAL, BUILT = Site("train.py", 30, 4), Site("train.py", 40, 4), Site("train.py", 10, 4)
VAL = LoaderMet(loader=1, name="val_loader", dataset=1, batches=4, batch_size=32, sampler="sequential")
PLAIN = LoaderMet(loader=1, name="loader", dataset=1, batches=4, batch_size=32, sampler="sequential")
UNREAD = LoaderUnread(name="train_loader", samples=1000, site=BUILT)
CALL = ModelCalled(model=1, loader=1)
BATCH = [BatchDrawn(loader=1), CALL, BackwardEnded(written=1, loader=1)]


def trained(loader=1):
    batch = [BatchDrawn(loader=loader), ModelCalled(model=1, loader=loader), BackwardEnded(written=1, loader=loader)]
    return [LoaderStarted(loader=loader, site=LOOP), *batch * 4, LoaderEnded(loader=loader)]


EVALUATED = [LoaderStarted(loader=1, site=EVAL), BatchDrawn(loader=1), CALL, LoaderEnded(loader=1)]
END = RunEnded(how="finished")


def test_the_failure_is_found_at_its_line():
    (finding,) = judge(TrainingOnEvaluationData, [VAL, *[*trained(), *EVALUATED] * 3, UNREAD, END])
    assert finding.primary.site == LOOP
    assert "`train_loader` is never read" in finding.message
    assert [mark.site for mark in finding.related] == [EVAL, BUILT]


def test_a_smaller_loader_counts_unless_its_name_says_that_it_is_held_out():
    smaller = LoaderUnread(name="train_loader", samples=100, site=BUILT)
    (finding,) = judge(TrainingOnEvaluationData, [VAL, *trained(), *EVALUATED, smaller, END])
    assert finding.primary.site == LOOP
    few = LoaderUnread(name="loader", samples=10, site=BUILT)
    assert not judge(TrainingOnEvaluationData, [VAL, *trained(), *EVALUATED, few, END])


@pytest.mark.parametrize(
    "events",
    [
        [VAL, *trained(), *EVALUATED, END],
        [PLAIN, *trained(), UNREAD, END],
        [VAL, *EVALUATED, UNREAD, END],
        [VAL, *trained(), *EVALUATED, UNREAD, RunEnded(how="crashed")],
        [VAL, *trained(), *EVALUATED, LoaderUnread(name="test_loader", samples=100, site=BUILT), END],
        [VAL, *trained(), *EVALUATED, LoaderUnread(name="test_loader", site=BUILT), END],
    ],
    ids=[
        "nothing unread",
        "not evaluated",
        "not trained",
        "crashed",
        "a smaller one that is held out",
        "an unshuffled one",
    ],
)
def test_the_corrected_code_is_quiet(events):
    assert not judge(TrainingOnEvaluationData, events)


def test_training_on_a_shuffled_loader_too_is_quiet():
    other = LoaderMet(loader=2, name="loader", dataset=2, batches=4, batch_size=32, sampler="random")
    assert not judge(TrainingOnEvaluationData, [VAL, other, *trained(), *trained(2), *EVALUATED, UNREAD, END])


def test_an_evaluation_within_a_pass_of_training_is_quiet():
    looks = ModelCalled(model=1, loader=1, grad=False, tracked=False)
    passed = [LoaderStarted(loader=1, site=LOOP), *[*BATCH, looks] * 4, LoaderEnded(loader=1)]
    assert not judge(TrainingOnEvaluationData, [PLAIN, *passed * 3, UNREAD, END])


@pytest.mark.parametrize("sampler", ["sequential", "random"])
def test_a_loader_that_is_held_out_by_its_name_needs_no_evaluation(sampler, tmp_path):
    held_out = LoaderMet(loader=1, name="test_loader", dataset=1, batches=4, batch_size=32, sampler=sampler)
    unread = LoaderUnread(name="train_loader", site=BUILT)
    (finding,) = judge(TrainingOnEvaluationData, [held_out, *trained(), unread, END])
    assert finding.message == "the model is trained on `test_loader` and `train_loader` is never read"
    path = tmp_path / "train.py"
    path.write_text("train_loader = make()\nfor x, y in test_loader if quick else train_loader:\n    pass\n")
    elsewhere = LoaderUnread(name="train_loader", site=Site(str(path), 1))
    assert not judge(TrainingOnEvaluationData, [held_out, *trained(), elsewhere, END])
    support = LoaderMet(loader=1, name="test_support", dataset=1, batches=4, batch_size=32, sampler=sampler)
    assert not judge(TrainingOnEvaluationData, [support, *trained(), unread, END])
    assert not judge(TrainingOnEvaluationData, [CheckpointLoaded(), held_out, *trained(), unread, END])


def test_a_state_that_is_loaded_after_the_training_is_none_to_adapt():
    events = [VAL, *trained(), CheckpointLoaded(), UNREAD, END]
    assert judge(TrainingOnEvaluationData, events)


# --- rows of one result ---------------------------------------------------------------------------------------------

LOSS, SCORED = Site("graph.py", 20, 4), Site("graph.py", 30, 4)
PASS = BackwardEnded(written=1)


def scored(name="test_mask", hits=100, trained=200, *, agreed=True, names=(), model=1):
    return ResultRowsScored(
        model=model,
        name=name,
        names=(name, *names),
        samples=100,
        rows=200,
        trained=trained,
        hits=hits,
        agreed=agreed,
        loss=LOSS,
        site=SCORED,
    )


def test_held_out_rows_in_the_loss_are_found_at_the_loss():
    (finding,) = judge(TrainingOnEvaluationData, [PASS, scored(), scored(), END])
    assert finding.primary.site == LOSS
    assert "the 100 samples of `test_mask` are in the loss" in finding.message
    assert [mark.site for mark in finding.related] == [SCORED]


def test_held_out_rows_that_are_partly_in_the_loss_are_found_beside_a_test_that_is_not():
    events = [PASS, scored("val_mask", hits=40), scored(hits=0), END]
    (finding,) = judge(TrainingOnEvaluationData, events)
    assert "40 of the 100 samples of `val_mask` are in the loss" in finding.message


def test_an_evaluation_on_training_rows_outside_of_the_loss_does_not_hide_an_inverted_mask():
    events = [PASS, scored("train_mask", hits=0, trained=100), scored(trained=100), END]
    (finding,) = judge(TrainingOnEvaluationData, events)
    assert "`test_mask`" in finding.message


def test_the_complement_of_the_training_mask_is_held_out():
    assert judge(TrainingOnEvaluationData, [PASS, scored("mask", names=("~train_mask",)), END])


@pytest.mark.parametrize(
    "events",
    [
        [scored("train_mask"), END],
        [scored("mask", names=("train_mask",)), END],
        [scored("group == 1"), END],
        [scored("train_mask", trained=100), scored(hits=0, trained=100), END],
        [scored("val_mask", trained=150), scored(hits=0, trained=150), END],
        [scored(hits=0, trained=100), scored(), END],
        [scored(agreed=False), END],
        [scored(hits=9), END],
        [scored(hits=0, trained=100), scored(hits=60), END],
        [scored(), RunEnded(how="crashed")],
    ],
    ids=[
        "accuracy on the training mask",
        "the same under another name",
        "accuracy of a group",
        "beside the test mask",
        "a last fit with the validation rows",
        "trained on after an evaluation",
        "towards other targets",
        "a few of the rows",
        "splits that are drawn again",
        "crashed",
    ],
)
def test_healthy_selections_of_rows_are_quiet(events):
    assert not judge(TrainingOnEvaluationData, [PASS, *events])
