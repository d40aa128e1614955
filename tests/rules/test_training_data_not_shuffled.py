import pytest

from truestep.events import BatchRead, LoaderEnded, LoaderMet, LoaderStarted, OptimizerStepped, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.training_data_not_shuffled import TrainingDataNotShuffled
from truestep.testing import judge

MADE = Site("train.py", 12, 9)
STEP = OptimizerStepped(optimizer=1)
SORTED = ((0, 0, 1), (0, 1, 2), (1, 1, 1), (2, 2, 1), (2, 2, 1))


def met(sampler="sequential", loader=1, **more):
    return LoaderMet(loader=loader, name="train_dl", dataset=7, batches=40, sampler=sampler, site=MADE, **more)


def epoch(labels=SORTED, loader=1, stepped=True):
    read = [
        event
        for place, seen in enumerate(labels)
        for event in (BatchRead(loader=loader, place=place, labels=seen, labelled=True), *[STEP] * stepped)
    ]
    return [LoaderStarted(loader=loader), *read, LoaderEnded(loader=loader)]


def test_sorted_labels_in_two_passes_are_found_where_the_loader_is_made():
    (finding,) = judge(TrainingDataNotShuffled, [met(), *epoch() * 3])
    assert finding.primary.site == MADE
    assert finding.message == "`train_dl` reads the training data class by class, in the order of the data set"
    assert finding.primary.label == "labels rise from 0 to 2 over a pass"
    assert finding.seen.count == 3
    assert "shuffle=True" in finding.help


def test_a_loader_made_for_every_epoch_is_found_once():
    (finding,) = judge(TrainingDataNotShuffled, [met(), *epoch(), met(loader=2), *epoch(loader=2)])
    assert finding.seen.count == 2


@pytest.mark.parametrize(
    "events",
    [
        [met(), *epoch()],
        [met(sampler="random"), *epoch() * 3],
        [met(sampler="own"), *epoch() * 3],
        [met(iterable=True), *epoch() * 3],
        [met(), *epoch(stepped=False) * 3],
        [met(), *epoch(((0, 0, 1),) * 5) * 3],
        [met(), *epoch(((0, 0, 1), (1, 1, 1), (0, 0, 1), (1, 1, 1))) * 3],
        [met(), *epoch(((0, 0, 1), (), (1, 1, 1), (1, 1, 1), (1, 1, 1))) * 3],
        [met(), *epoch(SORTED[:3]) * 3],
        [met(), *epoch()[:-1] * 3],
    ],
    ids=[
        "one pass", "shuffled", "own sampler", "stream", "no steps", "one class", "in turns", "mixed batch",
        "three batches", "left early",
    ],
)  # fmt: skip
def test_quiet(events):
    assert judge(TrainingDataNotShuffled, events) == []


def test_without_labels_nothing_is_called_clear():
    rule, run = TrainingDataNotShuffled(), Progress()
    for event in (met(), LoaderStarted(loader=1), BatchRead(loader=1, place=0)):
        run.note(event)
        rule.observe(event, run)
    assert rule.verdict(run).outcome is Outcome.NOT_OBSERVED
