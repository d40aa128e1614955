import pytest

from truestep.events import BackwardEnded, BatchDrawn, LoaderMet, LoaderStarted, LoaderTimed, Site
from truestep.findings import Severity
from truestep.rules.workers_respawned import WorkersRespawned
from truestep.testing import judge

MADE, BACKWARD = Site("train.py", 12, 9), Site("train.py", 20, 8)
MET = LoaderMet(loader=1, name="train_loader", batches=8, workers=4, site=MADE)
TRAINED = [
    MET,
    LoaderStarted(loader=1),
    BatchDrawn(loader=1),
    BackwardEnded(site=BACKWARD, observed=2, written=2, loader=1),
]


def timed(starting_s=6.0, span_s=20.0, passes=10, **more):
    return LoaderTimed(loader=1, passes=passes, drawn=80, waited_s=7.0, starting_s=starting_s, span_s=span_s, **more)


def test_slow_starts_are_found_where_the_loader_was_made():
    (finding,) = judge(WorkersRespawned, [*TRAINED, timed()])
    assert finding.primary.site == MADE
    assert finding.severity is Severity.SPEED
    assert "9 times" in finding.message
    assert "6.0 s of 20.0 s" in finding.cost
    assert (finding.seen.count, finding.seen.total, finding.seen.unit) == (9, 10, "passes")


@pytest.mark.parametrize("times", [{"starting_s": 4.9}, {"span_s": 40.0}, {"passes": 4}])
def test_quick_starts_long_epochs_and_few_epochs_are_quiet(times):
    assert judge(WorkersRespawned, [*TRAINED, timed(**times)]) == []


def test_a_loader_that_is_not_trained_on_is_quiet():
    other = BackwardEnded(site=BACKWARD, observed=2, written=2, loader=2)
    assert judge(WorkersRespawned, [MET, LoaderStarted(loader=1), BatchDrawn(loader=1), other, timed()]) == []


def test_a_crowded_machine_is_not_judged():
    assert judge(WorkersRespawned, [*TRAINED, timed(crowded=True)]) == []
