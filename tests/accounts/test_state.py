"""The account of state on hand-built events."""

from truestep.accounts import State
from truestep.events import (
    CheckpointLoaded,
    CheckpointSaved,
    ModelMet,
    OptimizerLoaded,
    OptimizerStepped,
    ScheduleMoved,
    Site,
    StateLoaded,
    StateTaken,
)
from truestep.rules import Progress

SAVE, LOAD, TAKE = Site("train.py", 60, 8), Site("train.py", 70, 8), Site("train.py", 59, 8)
STEP = OptimizerStepped(optimizer=1, observed=1, fresh=1)


def account(*events) -> State:
    run = Progress()
    for event in events:
        run.note(event)
    return run.state


def test_a_run_without_training_has_no_line():
    assert account(ModelMet(model=1)).entry() is None


def test_a_run_that_saved_and_loaded_nothing():
    assert account(STEP).entry().text == "nothing saved or loaded"


def test_files_and_loads_have_their_lines():
    taken, saved = StateTaken(site=TAKE), CheckpointSaved(site=SAVE, holds=("model",))
    entry = account(STEP, *[taken, saved] * 12, CheckpointLoaded(site=LOAD), StateLoaded(site=LOAD)).entry()
    assert entry.text == (
        "saved 12 times (train.py:60), read from file once (train.py:70), "
        "weights loaded once (train.py:70), state dicts taken 12 times (train.py:59)"
    )
    assert [(line["what"], line["count"]) for line in entry.facts["lines"]][:2] == [("taken", 12), ("saved", 12)]


def test_a_state_that_is_only_taken():
    text = account(STEP, StateTaken(site=TAKE), StateTaken(site=SAVE)).entry().text
    assert text == "state dicts taken twice at 2 lines, nothing saved or loaded"


def test_states_that_stay_in_a_file():
    file = CheckpointLoaded(site=LOAD, optimizers=1, schedules=1)
    state = account(STEP, file)
    assert state.left() == (1, 1)
    assert state.entry().text.endswith("state of the optimizer and of the schedule in a file not loaded")
    assert account(STEP, file, OptimizerLoaded(optimizer=1), ScheduleMoved(scheduler=1)).left() == (0, 0)
    assert account(STEP, OptimizerLoaded(optimizer=1), file).left() == (1, 1)
