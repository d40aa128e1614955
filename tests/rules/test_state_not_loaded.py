import pytest

from truestep.events import (
    CheckpointLoaded,
    OptimizerBuilt,
    OptimizerLoaded,
    OptimizerStepped,
    RunStarted,
    ScheduleMoved,
    SchedulerBuilt,
    SchedulerStepped,
    Site,
    StateLoaded,
    StateTaken,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.state_not_loaded import StateNotLoaded
from truestep.testing import judge

LINE = Site("train.py", 40, 4)


def taken(**more) -> StateTaken:
    return StateTaken(site=LINE, owner="net", **more)


def test_a_result_that_is_discarded_is_found():
    (finding,) = judge(StateNotLoaded, [taken(dropped=True)])
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.HIGH)
    assert finding.message == "`net.state_dict()` only returns a state, and this line discards it"
    assert finding.help == "load the state with `net.load_state_dict(state)`"


def test_a_state_that_is_overwritten_is_found():
    (finding,) = judge(StateNotLoaded, [taken(into="best")])
    assert finding.message == "the current state of `net` was written over the one in `best`"


def test_a_copy_that_no_code_reads_is_found_with_medium_confidence():
    (finding,) = judge(StateNotLoaded, [taken(kept="best", trained=True)] * 3)
    assert finding.message == "trained weights of `net` are kept in `best`, and no code reads it"
    assert (finding.confidence, finding.seen.count) == (Confidence.MEDIUM, 3)


@pytest.mark.parametrize(
    "events",
    [
        [taken(trained=True)],
        [taken(kept="before")],
        [taken(kept="before", trained=True, kind="optimizer")],
        [RunStarted(script="train.py", world_size=2), taken(dropped=True)],
    ],
    ids=["used", "before training", "of an optimizer", "several processes"],
)
def test_other_states_are_quiet(events):
    assert judge(StateNotLoaded, events) == []


def test_without_a_state_dict_it_is_not_observed():
    verdict = StateNotLoaded().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no call of state_dict")


def loads(*, initial=True):
    return OptimizerLoaded(optimizer=1, name="opt", initial=initial, site=LINE)


BUILT = [OptimizerBuilt(optimizer=1, parameters=(1, 2))]
STEPPED = [OptimizerStepped(optimizer=1)]
WEIGHTS = StateLoaded(model=1, parameters=(1, 2))


def test_moments_without_their_weights_are_found():
    (finding,) = judge(StateNotLoaded, [*BUILT, loads(), *STEPPED * 3])
    assert finding.message == "`opt` loaded the moments of earlier steps, and its model no weights"
    assert (finding.primary.site, finding.confidence, finding.seen.count) == (LINE, Confidence.MEDIUM, 1)


def test_moments_with_their_weights_are_quiet():
    for events in ([WEIGHTS, loads()], [loads(), WEIGHTS], [loads(initial=False)]):
        assert judge(StateNotLoaded, [*BUILT, *events, *STEPPED * 3]) == []
    assert judge(StateNotLoaded, [*BUILT, loads()]) == []


FILE = CheckpointLoaded(site=Site("train.py", 38), optimizers=1, schedules=1, resumes=True)
ADAM = [OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2), remembers=True)]
READ = StateLoaded(model=1, parameters=(1, 2), site=LINE)
COSINE = SchedulerBuilt(scheduler=1, name="cosine", optimizer=1)
MOVED = ScheduleMoved(scheduler=1)


def turn(optimizer_steps=1):
    return SchedulerStepped(scheduler=1, optimizer_steps=optimizer_steps)


def test_moments_that_stay_in_the_file_of_a_resumed_run_are_found():
    (finding,) = judge(StateNotLoaded, [*ADAM, FILE, READ, *STEPPED * 3])
    assert finding.message == "`opt` begins again: the moments of earlier steps in the file were not loaded"
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.MEDIUM)


def test_moments_are_missed_where_the_schedule_goes_on():
    fresh = CheckpointLoaded(site=LINE, optimizers=1, schedules=1)
    assert judge(StateNotLoaded, [*ADAM, COSINE, fresh, READ, MOVED, *STEPPED, turn()]) != []
    assert judge(StateNotLoaded, [*ADAM, COSINE, fresh, READ, *STEPPED, turn()]) == []


def test_a_schedule_that_stays_in_the_file_is_found():
    (finding,) = judge(StateNotLoaded, [*ADAM, COSINE, FILE, READ, loads(initial=False), *[*STEPPED, turn()] * 3])
    assert finding.message == "`cosine` begins again: the steps in the file were not loaded"


@pytest.mark.parametrize(
    "events",
    [
        [*ADAM, COSINE, FILE, READ, loads(initial=False), MOVED, *STEPPED, turn()],
        [*ADAM, COSINE, FILE, READ, loads(initial=False), turn(0), turn(0), *STEPPED, turn()],
        [*ADAM, *STEPPED, FILE, READ, *STEPPED],
        [*BUILT, FILE, READ, *STEPPED],
        [*ADAM, FILE, StateLoaded(model=2, parameters=(3,)), *STEPPED],
        [*ADAM, CheckpointLoaded(site=LINE, schedules=1, resumes=True), READ, *STEPPED],
    ],
    ids=["all of it", "stepped to its place", "after training", "no moments", "another model", "not in the file"],
)
def test_files_that_are_used_are_quiet(events):
    assert judge(StateNotLoaded, events) == []


@pytest.mark.parametrize("file", [FILE, CheckpointLoaded(site=LINE, optimizers=1, resumes=True)])
def test_a_schedule_that_no_file_has_is_found_where_its_first_step_changes_the_rate(file):
    first = SchedulerStepped(scheduler=1, site=LINE, optimizer_steps=1, jump=(0.02, 0.1))
    resumed = [*ADAM, COSINE, file, READ, loads(initial=False), *STEPPED]
    (finding,) = judge(StateNotLoaded, [*resumed, first])
    assert finding.message.startswith("`cosine` begins again: ")
    if file is FILE:
        return
    assert finding.cost == "its first step changes the learning rate from 0.02 to 0.1"
    assert judge(StateNotLoaded, [*resumed, turn()]) == []
    assert judge(StateNotLoaded, [*resumed, MOVED, first]) == []
    assert judge(StateNotLoaded, [*ADAM, COSINE, *STEPPED, first]) == []
