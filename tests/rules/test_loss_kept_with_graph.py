import pytest

from truestep.events import BackwardEnded, GraphsKept, ModelCalled, OptimizerStepped, Site
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.loss_kept_with_graph import LossKeptWithGraph
from truestep.testing import judge

LINE = Site("train.py", 30, 8)
STEP = OptimizerStepped(optimizer=1)


def kept(alive, **more):
    return GraphsKept(alive=alive, of=alive + 2, nodes=57, kept_bytes=2_000_000, name="losses", site=LINE, **more)


def test_graphs_that_pile_up_are_found_at_the_line_that_keeps_them():
    (finding,) = judge(LossKeptWithGraph, [kept(16), STEP, kept(64), STEP, kept(256)])
    assert finding.primary.site == LINE
    assert "`losses`" in finding.message
    assert (finding.seen.count, finding.seen.total, finding.seen.unit) == (256, 258, "graphs")
    assert "256 graphs of 57 operations" in finding.cost
    assert "2.0 MB each, 512.0 MB in all" in finding.cost


def test_activations_are_named_where_no_backward_ran():
    (finding,) = judge(LossKeptWithGraph, [kept(16, backward_ran=False), kept(32, backward_ran=False)])
    assert "activations" in finding.primary.label


def test_an_unknown_variable_and_size_are_left_out():
    (finding,) = judge(LossKeptWithGraph, [e for n in (20, 40) for e in (GraphsKept(alive=n, of=n, nodes=3), STEP)])
    assert finding.message.startswith("a variable keeps")
    assert "each" not in finding.cost


def test_a_bounded_number_of_graphs_is_quiet():
    assert judge(LossKeptWithGraph, [kept(20), kept(20), kept(20)]) == []


def test_few_graphs_are_quiet():
    assert judge(LossKeptWithGraph, [kept(4), kept(8)]) == []


def test_many_losses_of_one_step_are_quiet():
    assert judge(LossKeptWithGraph, [kept(16), kept(32), STEP]) == []


def test_a_long_roll_out_that_a_backward_pass_uses_is_quiet():
    roll_out = [kept(16, backward_ran=False), kept(32, backward_ran=False), BackwardEnded(written=1), STEP]
    assert judge(LossKeptWithGraph, roll_out) == []


def test_an_evaluation_that_keeps_its_graphs_is_found_when_the_training_goes_on():
    looks = [kept(16, backward_ran=False), kept(32, backward_ran=False)]
    assert len(judge(LossKeptWithGraph, [*looks, ModelCalled(model=1), BackwardEnded(written=1), STEP])) == 1


@pytest.mark.parametrize(("times", "outcome"), [(22, Outcome.NOT_OBSERVED), (23, Outcome.CLEAR)])
def test_a_run_that_is_too_short_is_not_observed(times, outcome):
    rule, event = LossKeptWithGraph(), BackwardEnded()
    rule.observe(event, Progress())
    rule.again(event, times)
    assert rule.verdict(Progress()).outcome is outcome


def test_a_collection_of_losses_that_passes_began_from_is_found_at_once():
    (finding,) = judge(LossKeptWithGraph, [kept(4, used=True), STEP])
    assert (finding.primary.site, finding.confidence) == (LINE, Confidence.MEDIUM)
    (finding,) = judge(LossKeptWithGraph, [kept(4, used=True), STEP, kept(16)])
    assert finding.confidence is Confidence.HIGH
