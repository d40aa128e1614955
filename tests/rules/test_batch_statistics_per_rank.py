"""Three or four values per channel on each of several ranks are reported; fewer belong to another rule."""

import pytest

from truestep.events import (
    BackwardEnded,
    BatchStatisticsTaken,
    Event,
    GroupJoined,
    ModelCalled,
    ModelMet,
    OptimizerStepped,
    ReplicaWrapped,
    Site,
)
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.batch_statistics_per_rank import BatchStatisticsPerRank
from truestep.rules.batchnorm_tiny_batch import BatchnormTinyBatch
from truestep.testing import judge

CALL = Site("train.py", 20, 8)
MET: list[Event] = [ModelMet(model=1, name="net", parameters=(1, 2))]
REST: list[Event] = [BackwardEnded(), OptimizerStepped(optimizer=1)]
PLAIN: list[Event] = [ModelCalled(model=1, site=CALL), *REST]
WRAPPED = ReplicaWrapped(replica=1, ranks=(0, 1), parameters=(1, 2))


def run(*values: int, wrapped: Event = WRAPPED) -> list[Event]:
    """Sampled steps with these values per channel, each with others after it."""
    taken = [BatchStatisticsTaken(model=1, layers=2, values=most, kind="BatchNorm1d", site=CALL) for most in values]
    steps = [[ModelCalled(model=1, site=CALL), one, *REST, *PLAIN * 5] for one in taken]
    return [*MET, wrapped, *(event for step in steps for event in step)]


@pytest.mark.parametrize("values", [3, 4])
def test_three_or_four_values_on_each_of_two_ranks_are_found(values: int) -> None:
    (finding,) = judge(BatchStatisticsPerRank, run(*[values] * 4))
    assert finding.primary.site == CALL
    assert finding.message.endswith(f"is trained on {values} values per channel, and 2 ranks have {2 * values}")
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (4, 4, 0)


def test_a_batch_that_is_uneven_counts_by_its_most_values() -> None:
    (finding,) = judge(BatchStatisticsPerRank, run(4, 2, 4, 3))
    assert "no more than 4 values" in finding.primary.label


@pytest.mark.parametrize("values", [(5,) * 6, (4, 4, 4, 4, 5), (3,) * 3], ids=["five", "a larger batch", "few steps"])
def test_more_values_and_too_little_evidence_are_quiet(values: tuple[int, ...]) -> None:
    assert judge(BatchStatisticsPerRank, run(*values)) == []


def test_two_values_belong_to_the_rule_on_tiny_batches() -> None:
    events = [GroupJoined(rank=0, world_size=2), *run(*[2] * 4)]
    assert judge(BatchStatisticsPerRank, events) == []
    (finding,) = judge(BatchnormTinyBatch, events)
    assert "SyncBatchNorm.convert_sync_batchnorm(model)" in finding.help


def test_a_model_outside_of_the_wrapper_is_quiet() -> None:
    other = ReplicaWrapped(replica=1, ranks=(0, 1), parameters=(7,))
    assert judge(BatchStatisticsPerRank, run(*[3] * 6, wrapped=other)) == []


def test_one_process_has_no_verdict() -> None:
    rule = BatchStatisticsPerRank()
    assert rule.verdict(Progress({BatchStatisticsTaken})).outcome is Outcome.NOT_OBSERVED
