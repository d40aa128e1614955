import pytest

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    ModelCalled,
    OptimizerStepped,
    RowsRead,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.one_batch_per_epoch import OneBatchPerEpoch
from truestep.testing import judge

LOOP, CALL, STEP, EVALUATE = (Site("train.py", line, 4, line, 20, "train") for line in (20, 22, 24, 40))
MET = [LoaderMet(loader=1, name="train_dl", batches=30), LoaderMet(loader=2, name="val_dl", batches=5)]


def started(left="return", loader=1, sums=True):
    at = () if not left else (26, 8, 26, 20)
    return LoaderStarted(loader=loader, left=left, left_at=at, body=(20, 26) if at else (), sums=sums, site=LOOP)


def epoch(start, batches=1, loader=1, step=STEP):
    passed = [BatchDrawn(loader=loader), ModelCalled(model=1, site=CALL), BackwardEnded(site=step)]
    return [start, *[*passed, OptimizerStepped(optimizer=1, site=step)] * batches]


def evaluation():
    drawn = [BatchDrawn(loader=2), ModelCalled(model=1, site=EVALUATE, grad=False, tracked=False)] * 5
    return [LoaderStarted(loader=2, site=EVALUATE), *drawn, LoaderEnded(loader=2)]


def test_a_return_in_the_training_loop_is_found_at_the_return():
    (finding,) = judge(OneBatchPerEpoch, [*MET, *epoch(started()) * 5])
    assert (finding.primary.site.line, finding.primary.site.column) == (26, 8)
    assert finding.related[0].site == LOOP
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "the loop over `train_dl` trains on its first batch only and skips the other 29"
    assert (finding.seen.count, finding.seen.unit) == (5, "passes")


def test_a_return_in_the_evaluation_is_found_where_it_adds_up():
    passed = [BatchDrawn(loader=1), ModelCalled(model=1, site=CALL, grad=False, tracked=False)]
    (finding,) = judge(OneBatchPerEpoch, [*MET, *[started(), *passed] * 4])
    assert "evaluates on its first batch only" in finding.message
    assert judge(OneBatchPerEpoch, [*MET, *[started(sums=False), *passed] * 4]) == []


@pytest.mark.parametrize("left", ["break", "next"])
def test_a_break_is_found_only_beside_whole_evaluations(left):
    once = epoch(started(left))
    (finding,) = judge(OneBatchPerEpoch, [*MET, *[*once, *evaluation()] * 4])
    assert finding.confidence is Confidence.MEDIUM
    assert judge(OneBatchPerEpoch, [*MET, *once * 40]) == []
    assert judge(OneBatchPerEpoch, [*MET, *[*once * 10, *evaluation()] * 4]) == []


def test_many_single_steps_are_no_epochs():
    once = epoch(started(sums=False))
    assert len(judge(OneBatchPerEpoch, [*MET, *once * 12])) == 1
    assert judge(OneBatchPerEpoch, [*MET, *once * 61]) == []


@pytest.mark.parametrize(
    "events",
    [
        epoch(started()) * 2,
        epoch(started(), batches=2) * 4,
        [*epoch(started(), batches=30), LoaderEnded(loader=1)] * 4,
        epoch(started("")) * 4,
        epoch(started(), step=EVALUATE)[:2] * 4,
        [*epoch(started(), batches=4), *epoch(started()) * 4],
    ],
    ids=["two passes", "two batches", "whole passes", "under a condition", "only drawn", "later passes"],
)
def test_quiet(events):
    assert judge(OneBatchPerEpoch, [*MET, *events]) == []


def test_a_loader_of_one_batch_is_quiet():
    for batches in (1, None):
        assert judge(OneBatchPerEpoch, [LoaderMet(loader=1, batches=batches), *epoch(started()) * 5]) == []


def test_a_sampled_batch_that_is_trained_on_elsewhere_is_quiet():
    drawn = [
        started(),
        BatchDrawn(loader=1),
        BackwardEnded(site=EVALUATE),
        OptimizerStepped(optimizer=1, site=EVALUATE),
    ]
    assert judge(OneBatchPerEpoch, [*MET, *drawn * 5]) == []


def test_a_source_that_cannot_be_read_is_not_called_clear():
    rule, run = OneBatchPerEpoch(), Progress()
    for event in (*MET, LoaderStarted(loader=1, left="unread")):
        run.note(event)
        rule.observe(event, run)
    assert rule.verdict(run).outcome is Outcome.NOT_OBSERVED


def memory(rows, least=0, most=63, fresh=0):
    return RowsRead(model=1, table="memory", rows=rows, read=64, least=least, most=most, fresh=fresh, site=CALL)


def test_the_first_rows_of_a_memory_that_grows_are_found():
    (finding,) = judge(OneBatchPerEpoch, [*map(memory, range(128, 728, 100)), RunEnded(how="finished")])
    assert finding.message == "each step is made on the first 64 rows of `memory`, which has 628 in the end"
    assert finding.primary.site == CALL


@pytest.mark.parametrize(
    "reads",
    [
        [*map(memory, range(128, 728, 100)), memory(728, most=700)],
        [memory(728)] * 6,
        [*map(memory, range(128, 628, 100))],
        [memory(rows, rows - 64, rows - 1) for rows in range(128, 728, 100)],
        [memory(rows, fresh=64) for rows in range(128, 728, 100)],
    ],
    ids=["drawn once from all", "a table that is split", "few reads", "the latest rows", "the latest rows first"],
)
def test_other_rows_of_a_table_are_quiet(reads):
    assert not judge(OneBatchPerEpoch, [*reads, RunEnded(how="finished")])
