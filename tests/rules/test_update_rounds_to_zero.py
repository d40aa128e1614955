import pytest

from truestep.events import OptimizerBuilt, OptimizerStepped, RunEnded, Site, UpdateRounded
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.update_rounds_to_zero import UpdateRoundsToZero
from truestep.testing import judge

STEP = Site("train.py", 30, 8)
BUILT = OptimizerBuilt(optimizer=1, name="optimizer", lr=1e-5, parameters=(1,))
END = RunEnded(how="finished")


def run(changed, *, lr=1e-5, steps=101, kept=0.0):
    """A run with one event per sampled step, with these values of ``changed`` and ``lr``."""
    events = [BUILT]
    for step in range(steps):
        if step in (0, 1, 2, 3, 10, 20, 50, 100, 200):
            share = changed(step) if callable(changed) else changed
            rate = lr(step) if callable(lr) else lr
            rest = kept(step) if callable(kept) else kept if step >= 100 else 0.0
            events.append(UpdateRounded(optimizer=1, dtype="bfloat16", changed=share, lr=rate, kept=rest, site=STEP))
        events.append(OptimizerStepped(optimizer=1, fresh=1, observed=1))
    return events


def test_updates_that_are_never_left_are_found_at_the_step():
    (finding,) = judge(UpdateRoundsToZero, run(0.012))
    assert finding.primary.site == STEP
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "nearly every update of `optimizer` is rounded away"
    assert finding.primary.label == "parameters of bfloat16 keep their values"
    assert "1.20%" in finding.cost
    assert (finding.seen.count, finding.seen.total) == (4, 4)


def test_three_looks_are_enough_for_a_whole_run():
    assert len(judge(UpdateRoundsToZero, [*run(0.0, steps=60), END])) == 1
    assert judge(UpdateRoundsToZero, [*run(0.0, steps=60), RunEnded(how="interrupted")]) == []


def test_most_weights_that_keep_their_value_are_found():
    (finding,) = judge(UpdateRoundsToZero, [*run(0.25, steps=201, kept=0.6), END])
    assert finding.message == "most updates of `optimizer` are rounded away"
    assert finding.cost.startswith("60% of the weights")


@pytest.mark.parametrize(
    "events",
    [
        run(0.3),
        run(0.25, kept=0.4),
        run(0.25, kept=lambda step: 0.7 if step == 100 else 0.0, steps=201),
        run(0.25, kept=0.7, lr=lambda step: 1e-5 * (step + 1) / 1000, steps=201),
        run(lambda step: 0.0 if step else 0.6),
        run(lambda step: 0.4 if step == 200 else 0.0, lr=lambda step: 1e-5 * step / 400, steps=300),
        run(0.0, lr=lambda step: 1e-5 * (step + 1) / 1000),
        run(0.0, steps=20),
    ],
    ids=[
        "most values change",
        "fewer keep theirs",
        "moved later",
        "moves slowly in the warm-up",
        "converged",
        "works after the warm-up",
        "still in the warm-up",
        "too few steps",
    ],
)
def test_steps_that_work_or_will_are_quiet(events):
    assert judge(UpdateRoundsToZero, [*events, END]) == []


def test_a_step_that_works_takes_the_finding_back():
    assert judge(UpdateRoundsToZero, run(lambda step: 0.2 if step == 200 else 0.0, steps=210)) == []


def test_in_full_precision_it_is_not_observed():
    verdict = UpdateRoundsToZero().verdict(Progress())
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "no 16-bit parameter in an optimizer")
