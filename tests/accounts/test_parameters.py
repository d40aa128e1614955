"""The account of parameters on hand-built events."""

from truestep.events import (
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    Site,
    StateLoaded,
    TapeRead,
)
from truestep.rules import Progress

LINE, LOADED = Site("train.py", 30, 8), Site("train.py", 9, 0)
WEIGHTS = [ParameterMet(parameter=n, name=f"net.{n}.weight", shape=(4, 5), model=1) for n in (1, 2, 3, 4)]
NET = ModelMet(model=1, name="net", parameters=(1, 2, 3, 4))
ADAM = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1, 2, 3, 4))
READ = TapeRead(site=LINE, reached=(1, 2, 3, 4), forwarded=(1, 2, 3, 4))


def account(*events):
    run = Progress()
    for event in [*WEIGHTS, NET, *events]:
        run.note(event)
    return run.weights


def test_a_run_without_parameters_has_no_line():
    assert Progress().weights.entry() is None


def test_a_whole_training():
    entry = account(ADAM, READ, ParametersUnchanged(parameters=(), moved=(1, 2, 3, 4), steps=10)).entry()
    assert entry.text == "4 of 4 trained: 80 values"
    assert entry.facts["fates"] == {"trained": 4}


def test_parameters_that_were_not_compared_are_not_called_trained():
    assert account(ADAM, READ).entry().text == "4 parameters: 80 values"


def test_each_fate():
    half = OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2))
    still = ParametersUnchanged(parameters=(2, 3), moved=(1,), frozen=(4,), steps=10)
    facts = account(half, TapeRead(site=LINE, reached=(1, 3), forwarded=(1, 2, 3)), still)
    assert [facts.fate(n) for n in (1, 2, 3, 4)] == ["trained", "without a gradient", "in no optimizer", "frozen"]
    assert facts.entry().text == "1 of 4 trained, 1 in no optimizer, 1 without a gradient: 80 values, 1 frozen"
    assert [one["name"] for one in facts.entry().facts["left"]] == ["net.2.weight", "net.3.weight"]


def test_the_names_of_a_hundred_parameters_that_did_not_move_are_kept():
    many = [ParameterMet(parameter=n, name=f"{n}", shape=(1,), model=1) for n in range(10, 111)]
    still = ParametersUnchanged(parameters=tuple(range(10, 111)), moved=(), steps=10)
    facts = account(*many, OptimizerBuilt(optimizer=1, parameters=tuple(range(10, 111))), still).entry().facts
    assert (facts["fates"]["without_a_gradient"], len(facts["left"])) == (101, 100)


def test_parameters_that_an_optimizer_holds_and_does_not_move():
    facts = account(ADAM, READ, ParametersUnchanged(parameters=(1,), moved=(2, 3, 4), steps=10))
    assert facts.fate(1) == "unchanged"
    assert facts.entry().text == "3 of 4 trained, 1 unchanged: 80 values"


def test_an_average_moves_by_hand():
    frozen = ParametersUnchanged(parameters=(), moved=(1, 2, 3, 4), frozen=(3, 4), steps=10)
    facts = account(OptimizerBuilt(optimizer=1, parameters=(1, 2)), READ, frozen)
    assert facts.fate(3) == "moved by hand"
    assert facts.entry().text == "2 of 4 trained: 80 values, 2 moved outside of optimizers"


def test_facts_of_a_model_that_was_freed_are_kept():
    first = ParametersUnchanged(parameters=(1,), moved=(2, 3, 4), steps=10)
    later = ParametersUnchanged(parameters=(), moved=(), steps=20)
    assert account(ADAM, READ, first, later).still == {1}


def test_loaded_parameters_are_those_loaded_before_they_moved():
    early = StateLoaded(site=LOADED, module=1, parameters=(1, 2))
    late = StateLoaded(site=LINE, module=1, parameters=(1, 2, 3, 4))
    facts = account(early, ADAM, READ, ParametersUnchanged(parameters=(), moved=(1, 2, 3, 4), steps=10), late)
    assert facts.loaded == {1: LOADED, 2: LOADED}
    assert facts.entry().text == "4 of 4 trained: 80 values, 2 loaded (train.py:9)"
    assert facts.entry().facts["loaded"][0]["parameters"] == 2


def test_a_restored_copy_of_weights_outside_of_optimizers_is_not_loaded():
    begun = [OptimizerBuilt(optimizer=1, name="opt", parameters=(1, 2)), READ, OptimizerStepped(optimizer=1)]
    load = StateLoaded(model=1, parameters=(1, 2, 3, 4), site=LOADED)
    still = ParametersUnchanged(parameters=(3, 4), moved=(1, 2), steps=10)
    assert account(*begun, still, load).loaded == {}
    assert set(account(load, *begun, still).loaded) == {1, 2, 3, 4}
