import pytest

from truestep.events import BackwardEnded, GradientsTaken, GraphsRetained, OptimizerStepped, Site
from truestep.findings import Outcome, Severity
from truestep.rules import Progress
from truestep.rules.retain_graph_in_loop import RetainGraphInLoop
from truestep.testing import judge

LINE, OTHER = Site("train.py", 20, 4), Site("train.py", 30, 4)
BACKWARD = BackwardEnded(site=LINE, retained=True, written=1)
STEP = OptimizerStepped(optimizer=1)


def retained(**more):
    return GraphsRetained(**{"site": LINE, "followed": 24, "outlived": 24, "nodes": 57, "kept_bytes": 2_000_000} | more)


def test_graphs_that_nothing_uses_are_found_at_the_line_that_retains_them():
    (finding,) = judge(RetainGraphInLoop, [BACKWARD, STEP, retained()])
    assert finding.primary.site == LINE
    assert finding.severity is Severity.SPEED
    assert "57 operations that hold 2.0 MB" in finding.cost
    assert (finding.seen.count, finding.seen.unit) == (24, "graphs")


def test_an_unknown_size_is_left_out():
    (finding,) = judge(RetainGraphInLoop, [BACKWARD, STEP, retained(kept_bytes=0)])
    assert "hold" not in finding.cost


def test_a_small_size_is_reported_in_bytes():
    (finding,) = judge(RetainGraphInLoop, [BACKWARD, STEP, retained(kept_bytes=12)])
    assert "12 bytes" in finding.cost


def test_graphs_that_are_gone_before_the_next_forward_pass_are_quiet():
    assert judge(RetainGraphInLoop, [BACKWARD, STEP, retained(outlived=3)]) == []


def test_a_graph_that_another_pass_used_is_quiet():
    assert judge(RetainGraphInLoop, [BACKWARD, STEP, retained(used=1)]) == []


def test_a_graph_that_is_used_later_takes_it_back():
    assert judge(RetainGraphInLoop, [BACKWARD, STEP, retained(), BACKWARD, retained(used=1)]) == []


@pytest.mark.parametrize("late", [False, True])
def test_a_program_with_another_line_of_backward_is_quiet(late):
    other = BackwardEnded(site=OTHER, written=1)
    events = [BACKWARD, STEP, retained(), other] if late else [other, BACKWARD, STEP, retained()]
    assert judge(RetainGraphInLoop, events) == []


def test_gradients_taken_before_are_no_reason_and_a_new_line_of_them_is():
    taken = GradientsTaken(site=OTHER, create_graph=True)
    assert len(judge(RetainGraphInLoop, [taken, BACKWARD, STEP, retained(), taken])) == 1
    assert judge(RetainGraphInLoop, [BACKWARD, STEP, retained(), taken]) == []


def test_a_run_that_is_too_short_is_not_observed():
    rule, run = RetainGraphInLoop(), Progress()
    run.note(BACKWARD)
    rule.observe(BACKWARD, run)
    verdict = rule.verdict(run)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, GraphsRetained.absent)


def test_a_run_that_retains_nothing_is_clear():
    rule, run = RetainGraphInLoop(), Progress()
    plain = BackwardEnded(site=LINE, written=1)
    run.note(plain)
    rule.observe(plain, run)
    assert rule.verdict(run).outcome is Outcome.CLEAR
