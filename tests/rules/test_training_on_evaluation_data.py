"""A loader that is never read, and another one that is both trained on and evaluated."""

import pytest

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    LoaderUnread,
    ModelCalled,
    RunEnded,
    Site,
)
from truestep.rules.training_on_evaluation_data import TrainingOnEvaluationData
from truestep.testing import judge

LOOP, EVAL, BUILT = Site("train.py", 30, 4), Site("train.py", 40, 4), Site("train.py", 10, 4)
VAL = LoaderMet(loader=1, name="val_loader", dataset=1, batches=4, batch_size=32, sampler="sequential")
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
        [VAL, *trained(), UNREAD, END],
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
    assert not judge(TrainingOnEvaluationData, [VAL, *passed * 3, UNREAD, END])
