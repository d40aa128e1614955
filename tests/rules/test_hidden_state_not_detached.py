from truestep.events import BackwardEnded, GraphsChained, OptimizerStepped, Site
from truestep.findings import Outcome
from truestep.rules import Progress
from truestep.rules.hidden_state_not_detached import HiddenStateNotDetached
from truestep.testing import judge

LINE = Site("train.py", 20, 4)
STEPS = [BackwardEnded(site=LINE, retained=True), OptimizerStepped(optimizer=1)] * 16
FIRST = GraphsChained(site=LINE, steps=16, nodes=340)
SECOND = GraphsChained(site=LINE, steps=32, nodes=660)


def test_a_tape_that_grows_by_a_step_each_step_is_found():
    (finding,) = judge(HiddenStateNotDetached, [*STEPS, FIRST, *STEPS, SECOND])
    assert finding.primary.site == LINE
    assert "340 operations on the tape after 16 steps, 660 after 32" in finding.cost
    assert finding.seen.count == 32


def test_a_window_of_some_steps_is_quiet():
    assert judge(HiddenStateNotDetached, [*STEPS, FIRST, *STEPS]) == []


def test_a_tape_that_does_not_grow_is_quiet():
    assert judge(HiddenStateNotDetached, [FIRST, *STEPS, GraphsChained(site=LINE, steps=32, nodes=340)]) == []


def test_a_second_look_without_a_first_is_quiet():
    assert judge(HiddenStateNotDetached, [*STEPS, SECOND]) == []


def verdict(events):
    rule, run = HiddenStateNotDetached(), Progress()
    for event in events:
        run.note(event)
        rule.observe(event, run)
    return rule.verdict(run)


def test_few_retained_graphs_tell_nothing():
    few = verdict(STEPS)
    assert (few.outcome, few.reason) == (Outcome.NOT_OBSERVED, "fewer than 32 passes with a retained graph")
    assert verdict(STEPS * 2).outcome is Outcome.CLEAR
    assert verdict([BackwardEnded(site=LINE)]).outcome is Outcome.CLEAR
