import pytest

from truestep.events import BackwardEnded, LossRead, OptimizerBuilt, OptimizerStepped, Site
from truestep.findings import Confidence, Outcome
from truestep.rules import Progress
from truestep.rules.loss_never_changes import LossNeverChanges
from truestep.testing import judge

BACKWARD, OTHER, STEP = Site("train.py", 30, 8), Site("train.py", 40, 8), Site("train.py", 32, 8)
BUILT = OptimizerBuilt(optimizer=1, name="opt", kind="Adam", parameters=(1,))
MADE = BackwardEnded(site=BACKWARD, observed=1, written=1)
USED = OptimizerStepped(optimizer=1, site=STEP, observed=1, fresh=1)


def run(values, steps=60, site=BACKWARD):
    """A run that reads one value in each of its first steps."""
    reads = [[LossRead(value=value, site=site, root="NegBackward0")] for value in values]
    return [BUILT, *(event for n in range(steps) for event in [*(reads[n] if n < len(reads) else []), MADE, USED])]


def test_a_loss_of_one_value_is_found_at_its_backward_pass():
    late = LossRead(value=0.6931, site=BACKWARD, root="NegBackward0")
    (finding,) = judge(LossNeverChanges, [*run([0.6931] * 7), late])
    assert finding.primary.site == BACKWARD
    assert finding.message == "the loss kept one value, 0.6931, over the whole run"
    assert finding.seen.count == 8
    assert finding.confidence is Confidence.HIGH


def test_one_of_several_losses_has_medium_confidence():
    other = [LossRead(value=value, site=OTHER) for value in (3.0, 2.0)]
    (finding,) = judge(LossNeverChanges, [*run([0.6931] * 8), *other])
    assert finding.confidence is Confidence.MEDIUM


def test_a_loss_that_changed_once_is_quiet():
    late = LossRead(value=0.6931, site=BACKWARD)
    assert judge(LossNeverChanges, [*run([0.6931] * 6 + [0.6932]), late]) == []
    assert judge(LossNeverChanges, [*run([0.6931] * 8), LossRead(value=0.5, site=BACKWARD)]) == []


def test_surrogates_of_value_zero_are_quiet():
    assert judge(LossNeverChanges, run([0.0] * 8)) == []


def test_a_backward_pass_that_no_step_uses_is_quiet():
    assert judge(LossNeverChanges, run([0.6931] * 8, site=OTHER)) == []


def test_a_short_run_is_not_observed():
    progress = Progress()
    for event in run([0.6931] * 8, steps=20):
        progress.note(event)
        progress.advance(event)
    verdict = LossNeverChanges().verdict(progress)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_OBSERVED, "fewer than 50 steps on the gradients of a loss")


@pytest.mark.parametrize(("steps", "count"), [(900, 0), (1_100, 1)])
def test_a_loss_that_starts_flat_is_not_found_early_while_the_run_goes_on(steps, count):
    rule, progress = LossNeverChanges(), Progress()
    for event in [*run([0.6931] * 7, steps=steps), LossRead(value=0.6931, site=BACKWARD, root="NegBackward0")]:
        progress.note(event)
        rule.observe(event, progress)
        progress.advance(event)
    assert len(rule.findings(progress)) == count


def test_a_loss_that_moves_in_later_digits_only_is_quiet():
    reads = [LossRead(value=529.8, moved=n > 3, site=BACKWARD, root="NegBackward0") for n in range(8)]
    assert judge(LossNeverChanges, [*run([529.8] * 8), *reads]) == []
