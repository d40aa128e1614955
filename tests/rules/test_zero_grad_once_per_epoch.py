from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    GradientsZeroed,
    LoaderStarted,
    MixtureMeasured,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.rules import Progress
from truestep.rules.missing_zero_grad import MissingZeroGrad
from truestep.rules.zero_grad_once_per_epoch import ZeroGradOncePerEpoch
from truestep.testing import judge

BACKWARD, STEP, ZERO = Site("train.py", 33, 8), Site("train.py", 34, 8), Site("train.py", 30, 4)
BUILT = OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1, 2))
START, BATCH = LoaderStarted(loader=1), BatchDrawn(loader=1)
FRESH = BackwardEnded(site=BACKWARD, observed=2, written=2, loader=1)
ONTO = BackwardEnded(site=BACKWARD, observed=2, written=2, onto_used=2, loader=1)
CLEAN = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
MIXED = OptimizerStepped(optimizer=1, site=STEP, observed=2, mixed=2)
FIRST_ZERO = GradientsZeroed(site=ZERO, optimizer=1, observed=2)
ZEROED = GradientsZeroed(site=ZERO, optimizer=1, used=2, observed=2)
REST = [BATCH, ONTO, MIXED, BATCH, ONTO, MIXED]


def epochs(*clearings, start=START):
    """One epoch of three steps for each clearing; None where nothing is cleared."""
    events = [BUILT]
    for number, clearing in enumerate(clearings):
        clean = number == 0 or clearing is not None
        events += [
            *([clearing] if clearing else []),
            start,
            BATCH,
            *([FRESH, CLEAN] if clean else [ONTO, MIXED]),
            *REST,
        ]
    return events


def test_clearing_at_the_top_of_the_epoch_is_found_at_the_step():
    (finding,) = judge(ZeroGradOncePerEpoch, epochs(FIRST_ZERO, ZEROED, ZEROED))
    assert finding.primary.site == STEP
    assert finding.related[0].site == BACKWARD
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (6, 9, 1)
    assert "opt.zero_grad()" in finding.help
    assert judge(MissingZeroGrad, epochs(FIRST_ZERO, ZEROED, ZEROED)) == []


def test_it_is_known_within_the_first_epoch_where_the_call_is_seen():
    assert len(judge(ZeroGradOncePerEpoch, epochs(FIRST_ZERO), ended="stopped")) == 1
    assert judge(MissingZeroGrad, epochs(FIRST_ZERO), ended="stopped") == []


def test_clearing_without_a_call_is_known_from_the_second_epoch():
    silent = [BUILT, START, BATCH, FRESH, CLEAN, *REST, START, BATCH, FRESH, CLEAN, *REST]
    (finding,) = judge(ZeroGradOncePerEpoch, silent)
    assert (finding.seen.count, finding.seen.first_step) == (4, 1)
    assert judge(MissingZeroGrad, silent) == []


def test_clearing_once_before_all_epochs_is_a_missing_zero_grad():
    assert judge(ZeroGradOncePerEpoch, epochs(FIRST_ZERO, None, None)) == []
    (finding,) = judge(MissingZeroGrad, epochs(FIRST_ZERO, None, None))
    assert finding.seen.count == 8


def test_clearing_every_few_steps_within_an_epoch_is_a_missing_zero_grad():
    events = [BUILT, START, BATCH, FRESH, CLEAN, *REST, ZEROED, BATCH, FRESH, CLEAN, *REST]
    assert judge(ZeroGradOncePerEpoch, events) == []
    assert len(judge(MissingZeroGrad, events)) == 1


def test_without_a_loader_any_clearing_after_mixed_steps_counts():
    fresh, onto = BackwardEnded(site=BACKWARD, written=2), BackwardEnded(site=BACKWARD, written=2, onto_used=2)
    events = [BUILT, FIRST_ZERO, fresh, CLEAN, onto, MIXED, ZEROED, fresh, CLEAN, onto, MIXED]
    assert len(judge(ZeroGradOncePerEpoch, events)) == 1
    assert judge(MissingZeroGrad, events) == []


def test_one_step_per_epoch_on_accumulated_gradients_is_quiet():
    more = BackwardEnded(site=BACKWARD, observed=2, written=2, onto_fresh=2, loader=1)
    assert judge(ZeroGradOncePerEpoch, [BUILT, *[FIRST_ZERO, START, BATCH, FRESH, BATCH, more, CLEAN] * 3]) == []


def test_clearing_every_step_is_quiet():
    assert judge(ZeroGradOncePerEpoch, [BUILT, START, *[FIRST_ZERO, BATCH, FRESH, CLEAN] * 5]) == []


def test_a_loader_of_an_evaluation_is_no_epoch():
    other = LoaderStarted(loader=2)
    events = [BUILT, START, BATCH, FRESH, CLEAN, *REST, other, BatchDrawn(loader=2), BATCH, ONTO, MIXED]
    assert judge(ZeroGradOncePerEpoch, events) == []


def test_steps_that_came_again_are_counted_and_the_cost_is_measured():
    rule, run = ZeroGradOncePerEpoch(), Progress()
    for event in [*epochs(FIRST_ZERO), MixtureMeasured(optimizer=1, ratio=7.25)]:
        run.note(event)
        rule.observe(event, run)
        run.advance(event)
    rule.again(MIXED, 100)
    rule.ended(RunEnded(how="stopped"), run)
    (finding,) = rule.findings(run)
    assert finding.seen.count == 102
    assert "7.2x" in finding.cost
