"""The account of steps on hand-built events."""

from truestep.accounts import Steps
from truestep.events import HandStepped, OptimizerBuilt, OptimizerStepped, Site
from truestep.rules import Progress

STEP, SECOND = Site("train.py", 32, 8), Site("train.py", 50, 8)
ADAM = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1,))
SGD = OptimizerBuilt(optimizer=2, name="other", kind="SGD", parameters=(2,))
USED = OptimizerStepped(optimizer=1, site=STEP, observed=1, fresh=1)
EMPTY = OptimizerStepped(optimizer=1, site=STEP, observed=1, absent_grad=1)
OTHER = OptimizerStepped(optimizer=2, site=SECOND, observed=1, fresh=1)


def account(*events) -> Steps:
    run = Progress()
    for event in events:
        run.note(event)
    return run.steps


def test_a_run_without_steps_has_no_line():
    assert account(ADAM).entry() is None


def test_steps_are_counted_by_kind_and_line():
    entry = account(ADAM, SGD, *[USED, OTHER, USED] * 600).entry()
    assert entry.text == "1,200 of Adam (train.py:32), 600 of SGD (train.py:50)"
    assert [(line["kind"], line["steps"]) for line in entry.facts["lines"]] == [("Adam", 1200), ("SGD", 600)]


def test_steps_without_gradients_are_named():
    assert account(ADAM, USED, EMPTY, EMPTY).entry().text == "3 of Adam (train.py:32), 2 without gradients"


def test_updates_by_hand_are_steps():
    assert account(HandStepped(site=STEP, moved=1)).entry().text == "1 by hand (train.py:32)"


def test_many_lines_are_summed():
    events = [OptimizerStepped(optimizer=1, site=Site("train.py", n), observed=1, fresh=1) for n in (1, 1, 2, 3)]
    assert account(ADAM, *events).entry().text == "2 of Adam (train.py:1), 2 at 2 other lines"


def test_a_step_with_few_parameters_examined_may_have_gradients():
    whole = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1, 2, 3))
    assert account(whole, USED, EMPTY, EMPTY).entry().text == "3 of Adam (train.py:32)"
    assert account(whole, EMPTY, EMPTY).entry().text == "2 of Adam (train.py:32), 2 without gradients"
