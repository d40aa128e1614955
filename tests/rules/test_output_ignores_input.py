import pytest

from truestep.events import OptimizerStepped, OutputsCompared, Site
from truestep.findings import Confidence, Outcome, Severity
from truestep.rules import Progress
from truestep.rules.output_ignores_input import OutputIgnoresInput
from truestep.testing import judge

LINE, STEP = Site("train.py", 22, 8), OptimizerStepped(optimizer=1)
SAMPLED = (0, 1, 2, 3, 10, 20, 50, 100, 200, 500)


def look(step, *, equal=True, moved=True, kind="ReLU", **more):
    kind = kind if equal and moved else ""
    return OutputsCompared(
        model=1, site=LINE, samples=32, equal=equal, moved=moved, layer="3", kind=kind, zero=True, steps=step, **more
    )


def differing(*steps):
    return [look(step, equal=False) for step in steps]


def test_a_model_that_learns_a_constant_is_found_at_its_call():
    looks = [*differing(0, 1, 2, 3), look(10, moved=False), *(look(step) for step in (20, 50, 100, 200))]
    (finding,) = judge(OutputIgnoresInput, [*looks, STEP])
    assert finding.primary.site == LINE
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)
    assert (finding.seen.count, finding.seen.first_step) == (4, 10)
    assert finding.message == "`model` returns the same output for every input"
    assert finding.cost == (
        "from step 10 to step 200 it learned a constant: its output rows were equal; "
        "`3` (ReLU) returns zero for every sample"
    )


@pytest.mark.parametrize(
    "looks",
    [
        differing(*SAMPLED),
        [look(step, moved=False) for step in SAMPLED],
        [look(step, kind="") for step in SAMPLED],
        [look(step) for step in SAMPLED[:7]],
        [*(look(step) for step in SAMPLED[:7]), *differing(100, 200)],
        [*differing(*SAMPLED[:7]), look(100, moved=False), look(200, kind=""), look(500)],
        [*(look(step) for step in SAMPLED), *differing(1000)],
    ],
    ids=[
        "outputs that differ", "not trained", "equal by design", "a short run", "a warm-up", "equal of late",
        "it recovered",
    ],
)  # fmt: skip
def test_healthy_models_are_quiet(looks):
    assert judge(OutputIgnoresInput, [*looks, STEP]) == []


def test_verdicts():
    run = Progress()
    assert OutputIgnoresInput().verdict(run).reason.startswith("no batch of four or more samples")
    run.note(look(0, equal=False))
    assert OutputIgnoresInput().verdict(run).reason == "fewer than 100 optimizer steps"
    run.step = 100
    assert OutputIgnoresInput().verdict(run).outcome is Outcome.CLEAR


def still(step, *, zero=True):
    return OutputsCompared(
        model=1, site=LINE, samples=32, equal=True, moved=False, layer="3", kind="ReLU", zero=zero, steps=step
    )


def test_units_that_died_in_training_are_found_without_a_gradient():
    (finding,) = judge(OutputIgnoresInput, [*differing(0, 1, 2), *(still(step) for step in SAMPLED[3:]), STEP])
    assert finding.primary.site == LINE
    assert finding.seen.first_step == 3


def test_outputs_that_do_not_change_are_quiet_from_the_first_step_on_or_without_zeros():
    assert judge(OutputIgnoresInput, [*(still(step) for step in SAMPLED), STEP]) == []
    looks = [*differing(0, 1, 2), *(still(step, zero=False) for step in SAMPLED[3:])]
    assert judge(OutputIgnoresInput, [*looks, STEP]) == []
