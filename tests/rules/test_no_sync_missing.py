"""Several averages for one step are reported, from the counts of the wrapper; one average is not."""

import pytest

from truestep.events import OptimizerStepped, ParameterMet, ReplicaRead, ReplicaWrapped, Site
from truestep.rules.no_sync_missing import NoSyncMissing
from truestep.testing import judge

WRAP = Site("train.py", 12)
LARGE = [
    ParameterMet(parameter=1, name="weight", shape=(1000, 1000)),
    ReplicaWrapped(replica=1, parameters=(1,), site=WRAP),
]
SMALL = [
    ParameterMet(parameter=1, name="weight", shape=(10, 10)),
    ReplicaWrapped(replica=1, parameters=(1,), site=WRAP),
]


def read(*prepared):
    """The wrapper has counted these passes at each of the first steps; the last one of a step is counted later."""
    return [event for number in prepared for event in (
        ReplicaRead(replica=1, optimizer=1, prepared=number), OptimizerStepped(optimizer=1)
    )]  # fmt: skip


@pytest.mark.parametrize(("prepared", "times"), [((3, 7, 10), 4), ((1, 3, 5), 2), ((7, 10, 10), 8)])
def test_an_average_for_each_micro_batch_is_found_at_the_wrapper(prepared, times):
    (finding,) = judge(NoSyncMissing, [*LARGE, *read(*prepared)])
    assert finding.primary.site == WRAP
    assert finding.message.startswith(f"gradients are averaged over ranks {times} times for one step")
    assert finding.cost == f"{times - 1} of {times} averages of 4 MB in each step are not needed"


@pytest.mark.parametrize(
    "prepared", [(0, 1, 2), (1, 2, 3), (0, 0, 0)], ids=["one", "a pass before training", "bypassed"]
)
def test_one_average_a_step_is_quiet(prepared):
    assert judge(NoSyncMissing, [*LARGE, *read(*prepared)]) == []


def test_small_models_are_quiet():
    assert judge(NoSyncMissing, [*SMALL, *read(3, 7, 10)]) == []
