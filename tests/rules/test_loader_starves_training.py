import pytest

from truestep.events import BackwardEnded, BatchDrawn, LoaderMet, LoaderStarted, LoaderTimed, OptimizerStepped, Site
from truestep.findings import Severity
from truestep.rules.loader_starves_training import LoaderStarvesTraining
from truestep.testing import judge

MADE, BACKWARD, STEP = Site("train.py", 12, 9), Site("train.py", 20, 8), Site("train.py", 21, 8)
MET = LoaderMet(loader=1, name="train_loader", batches=8, site=MADE)
WORKERS = LoaderMet(loader=1, name="train_loader", batches=8, workers=2, site=MADE)
BATCH = [LoaderStarted(loader=1), BatchDrawn(loader=1)]
BACK = BackwardEnded(site=BACKWARD, observed=2, written=2, loader=1)
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)


def timed(waited_s=9.0, span_s=12.0, *, starting_s=0.0, **more):
    times = {"waited_s": waited_s, "starting_s": starting_s, "span_s": span_s}
    return LoaderTimed(loader=1, passes=3, drawn=1200, **times, **more)


def test_waiting_is_found_where_the_loader_was_made():
    (finding,) = judge(LoaderStarvesTraining, [MET, *BATCH, BACK, STEPPED, timed()])
    assert finding.primary.site == MADE
    assert finding.severity is Severity.SPEED
    assert "75% of its time" in finding.message
    assert "num_workers" in finding.help
    assert "9.0 s of 12.0 s were spent waiting for 1,200 batches" in finding.cost
    assert (finding.seen.count, finding.seen.unit) == (1200, "batches")


def test_workers_that_are_too_slow_are_found():
    for beside in (False, True):
        (finding,) = judge(LoaderStarvesTraining, [WORKERS, *BATCH, BACK, STEPPED, timed(beside=beside)])
        assert "2 workers" in finding.primary.label


@pytest.mark.parametrize("times", [(7.9, 8.0), (9.0, 16.0)])
def test_short_waits_and_waits_beside_long_steps_are_quiet(times):
    assert judge(LoaderStarvesTraining, [MET, *BATCH, BACK, STEPPED, timed(*times)]) == []


def test_an_accelerator_may_work_while_the_run_makes_batches():
    assert judge(LoaderStarvesTraining, [MET, *BATCH, BACK, STEPPED, timed(beside=True)]) == []


def test_time_in_which_others_had_the_processors_is_not_counted():
    assert judge(LoaderStarvesTraining, [MET, *BATCH, BACK, STEPPED, timed(delayed_s=1.1)]) == []
    assert len(judge(LoaderStarvesTraining, [MET, *BATCH, BACK, STEPPED, timed(delayed_s=0.9, crowded=True)])) == 1


def test_workers_on_a_crowded_machine_are_not_judged():
    assert judge(LoaderStarvesTraining, [WORKERS, *BATCH, BACK, STEPPED, timed(crowded=True)]) == []


def test_evaluation_and_stopped_runs_are_quiet():
    other = BackwardEnded(site=BACKWARD, observed=2, written=2, loader=2)
    assert judge(LoaderStarvesTraining, [MET, *BATCH, timed()]) == []
    assert judge(LoaderStarvesTraining, [MET, *BATCH, BACK, timed()]) == []
    assert judge(LoaderStarvesTraining, [MET, *BATCH, other, STEPPED, timed()]) == []
    assert judge(LoaderStarvesTraining, [MET, *BATCH, BACK, STEPPED, timed()], ended="stopped") == []


def test_workers_that_are_started_again_are_another_failure():
    assert judge(LoaderStarvesTraining, [WORKERS, *BATCH, BACK, STEPPED, timed(starting_s=6.0)]) == []
