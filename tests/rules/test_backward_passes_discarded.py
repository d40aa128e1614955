import pytest

from truestep.events import (
    BackwardEnded,
    GradientsZeroed,
    LoaderEnded,
    OptimizerBuilt,
    OptimizerStepped,
    Site,
    TapeRead,
)
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.backward_passes_discarded import BackwardPassesDiscarded
from truestep.testing import judge

BACKWARD, ZERO, STEP = Site("train.py", 30, 8), Site("train.py", 31, 8), Site("train.py", 32, 8)
BUILT = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1, 2))
MADE = BackwardEnded(site=BACKWARD, observed=2, written=2)
CLEARED = GradientsZeroed(site=ZERO, optimizer=1, fresh=2, observed=2)
USED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)

READ = TapeRead(site=BACKWARD, reached=(1, 2))


def test_clearing_within_a_window_is_found_at_the_clearing():
    (finding,) = judge(BackwardPassesDiscarded, [BUILT, READ, *[MADE, CLEARED, MADE, CLEARED, MADE, USED] * 5])
    assert finding.primary.site == ZERO
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.total, finding.seen.unit) == (10, 15, "backward passes")
    assert finding.message.startswith("the gradients of 2 backward passes were cleared before each step")


def test_tries_before_two_of_three_steps_are_quiet():
    assert judge(BackwardPassesDiscarded, [BUILT, *[*[MADE, CLEARED, MADE, USED] * 2, MADE, USED] * 6]) == []


def test_clearing_by_assignment_is_found_at_the_backward_pass():
    (finding,) = judge(BackwardPassesDiscarded, [BUILT, *[MADE, MADE, USED] * 5])
    assert finding.primary.site == BACKWARD
    assert finding.related == ()


def test_passes_skipped_now_and_then_are_quiet():
    assert judge(BackwardPassesDiscarded, [BUILT, *[*[MADE, USED] * 4, MADE, CLEARED] * 5]) == []


def test_a_line_search_of_varying_length_is_quiet():
    events = [BUILT]
    for points in (1, 3, 2, 5, 4, 1, 2):
        events += [MADE, CLEARED] * points + [MADE, USED]
    assert judge(BackwardPassesDiscarded, events) == []


def test_a_step_behind_loops_of_different_length_is_found():
    events = [BUILT]
    for batches in (15, 4, 15, 4):
        events += [MADE, CLEARED] * batches + [MADE, LoaderEnded(loader=1), USED, CLEARED]
    (finding,) = judge(BackwardPassesDiscarded, events)
    assert (finding.primary.site, finding.seen.count, finding.seen.total) == (ZERO, 38, 42)
    assert "up to 15 backward passes" in finding.message


def test_steps_after_several_tries_are_quiet():
    events = [BUILT]
    for tries in (15, 4, 15, 4):
        events += [MADE, CLEARED] * tries + [MADE, USED, CLEARED]
    assert judge(BackwardPassesDiscarded, [*events, LoaderEnded(loader=1)]) == []


def test_a_line_that_is_discarded_as_a_whole_is_quiet():
    other = BackwardEnded(site=Site("train.py", 60, 8), observed=2, written=2)
    assert judge(BackwardPassesDiscarded, [BUILT, *[other, CLEARED, MADE, USED] * 10]) == []


def test_two_steps_are_too_few():
    assert judge(BackwardPassesDiscarded, [BUILT, *[MADE, CLEARED, MADE, USED] * 2]) == []


def test_a_line_without_a_readable_tape_is_found_with_medium_confidence():
    (finding,) = judge(BackwardPassesDiscarded, [BUILT, *[MADE, CLEARED, MADE, USED] * 5])
    assert finding.confidence is Confidence.MEDIUM


def test_gradients_that_the_script_reads_are_quiet_and_not_clear():
    run, rule = Progress(), BackwardPassesDiscarded()
    for event in [BUILT, TapeRead(site=BACKWARD, reached=(1, 2), read=True), *[MADE, CLEARED, MADE, USED] * 5]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
        run.advance(event)
    verdict = rule.verdict(run)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "gradients may be read by the script")


def test_steps_of_which_a_few_are_counted_late_are_found():
    late = [MADE, CLEARED, MADE, USED]
    (finding,) = judge(BackwardPassesDiscarded, [BUILT, READ, *late * 9, MADE, USED, MADE, CLEARED])
    assert (finding.seen.count, finding.seen.total) == (10, 20)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("loss.backward()\noptimizer.zero_grad()\n", True),
        ("loss.backward()\noptimizer.zero_grad()\nif step > 999:\n    optimizer.step()\n", False),
        ("loss.backward()\nprint([p.grad.norm() for p in net.parameters()])\noptimizer.zero_grad()\n", False),
        ("loss.backward()\nprint(time.perf_counter() - begin)\noptimizer.zero_grad()\n", False),
        ("net.weight.register_hook(kept.append)\nloss.backward()\noptimizer.zero_grad()\n", False),
        ("loss.backward()\nnoise(getattr(weight, 'grad'))\noptimizer.zero_grad()\n", False),
    ],
)
def test_a_line_that_is_cleared_between_the_steps_of_others(tmp_path, code, found):
    path = tmp_path / "train.py"
    path.write_text(code)
    place, clearing = Site(str(path), 1, 0), Site(str(path), 2, 0)
    read = TapeRead(site=place, reached=(1, 2))
    made = BackwardEnded(site=place, observed=2, written=2)
    cleared = GradientsZeroed(site=clearing, optimizer=1, fresh=2, observed=2)
    findings = judge(BackwardPassesDiscarded, [BUILT, read, READ, *[made, cleared, MADE, USED] * 6])
    assert [(one.primary.site, one.confidence) for one in findings] == [(place, Confidence.MEDIUM)] * found


def test_a_line_that_is_cleared_before_the_training_is_quiet(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("loss.backward()\noptimizer.zero_grad()\n")
    place = Site(str(path), 1, 0)
    warm = [BackwardEnded(site=place, observed=2, written=2), CLEARED]
    read = TapeRead(site=place, reached=(1, 2))
    assert judge(BackwardPassesDiscarded, [BUILT, read, READ, *warm * 9, *[MADE, USED] * 9]) == []


def test_a_line_for_an_optimizer_that_has_not_stepped_yet_is_quiet(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("loss.backward()\nlater.zero_grad()\n")
    place, later = Site(str(path), 1, 0), OptimizerBuilt(optimizer=2, name="later", parameters=(3,))
    made = BackwardEnded(site=place, observed=1, written=1)
    cleared = GradientsZeroed(site=ZERO, optimizer=2, fresh=1, observed=1)
    read = TapeRead(site=place, reached=(3,))
    assert judge(BackwardPassesDiscarded, [BUILT, later, read, READ, *[made, cleared, MADE, USED] * 9]) == []
