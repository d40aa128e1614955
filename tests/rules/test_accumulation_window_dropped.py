from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    GradientsZeroed,
    HandStepped,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    OptimizerBuilt,
    OptimizerStepped,
    ScalerStepped,
    Site,
)
from truestep.findings import Confidence, Severity
from truestep.rules.accumulation_window_dropped import AccumulationWindowDropped
from truestep.testing import judge

START, BACKWARD, STEP = Site("train.py", 25, 4), Site("train.py", 28, 8), Site("train.py", 30, 12)
MET = LoaderMet(loader=1, name="loader", batches=7)
SGD = OptimizerBuilt(optimizer=1, name="opt", kind="SGD", parameters=(1, 2))
STARTED, ENDED, DRAWN = LoaderStarted(loader=1), LoaderEnded(loader=1), BatchDrawn(loader=1)
FIRST = [DRAWN, BackwardEnded(site=BACKWARD, observed=2, written=2, loader=1)]
MORE = [DRAWN, BackwardEnded(site=BACKWARD, observed=2, written=2, onto_fresh=2, loader=1)]
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=2, fresh=2)
CLEARED = GradientsZeroed(site=START, optimizer=1, fresh=2, observed=2)
BEGIN = [SGD, MET]
WINDOW = [*FIRST, *MORE * 3, STEPPED]
REST = [*FIRST, *MORE * 2, ENDED]
EPOCH = [STARTED, *WINDOW, *REST]


def judged(*events):
    return judge(AccumulationWindowDropped, [*BEGIN, *events])


def test_cleared_windows_are_found_at_the_step():
    (finding,) = judged(*[CLEARED, *EPOCH] * 4)
    assert finding.primary.site == STEP
    assert finding.severity is Severity.WARNING
    assert [mark.site for mark in finding.related] == [BACKWARD, START]
    assert "last 3 of the 7 batches" in finding.message
    assert "43%" in finding.cost
    assert (finding.seen.count, finding.seen.unit) == (3, "epochs")


def test_a_first_window_of_one_batch_does_not_hide_the_rest():
    epoch = [STARTED, *FIRST, STEPPED, *FIRST, *MORE * 3, STEPPED, *FIRST, *MORE, ENDED, CLEARED]
    (finding,) = judged(*epoch * 4)
    assert "last 2 of the 7 batches" in finding.message


def test_a_first_window_of_one_batch_that_gets_the_rest_is_quiet():
    later = [STARTED, *MORE, STEPPED, *FIRST, *MORE * 3, STEPPED, *FIRST, *MORE, ENDED]
    assert judged(STARTED, *FIRST, STEPPED, *FIRST, *MORE * 3, STEPPED, *FIRST, *MORE, ENDED, *later * 4) == []


def test_gradients_cleared_by_hand_are_seen_at_the_next_backward():
    (finding,) = judged(*EPOCH * 4)
    assert finding.primary.site == STEP
    assert [mark.site for mark in finding.related] == [BACKWARD]
    assert finding.seen.count == 3


def test_windows_that_leak_are_found():
    leaking = [STARTED, *MORE * 4, STEPPED, *REST]
    (finding,) = judged(*EPOCH, *leaking * 3)
    assert finding.primary.site == STEP
    assert "next epoch" in finding.message
    assert "7 batches for 4" in finding.cost
    assert finding.seen.count == 3


def test_one_epoch_is_not_enough():
    assert judged(*EPOCH, CLEARED, *EPOCH) == []
    assert judged(*EPOCH, STARTED, *MORE * 4, STEPPED) == []


def test_a_last_window_that_is_stepped_on_is_quiet():
    assert judged(*[CLEARED, STARTED, *WINDOW, *FIRST, *MORE * 2, STEPPED, ENDED] * 4) == []
    assert judged(*[CLEARED, STARTED, *WINDOW, *FIRST, *MORE * 2, ENDED, STEPPED] * 4) == []


def test_windows_that_go_on_over_the_end_of_an_epoch_are_quiet():
    second = [STARTED, *MORE, STEPPED, *WINDOW, *FIRST, *MORE, ENDED]
    assert judged(*[*EPOCH, *second] * 4) == []


def test_windows_of_different_sizes_are_quiet():
    assert judged(*[STARTED, *FIRST, *MORE, STEPPED, *FIRST, STEPPED, *WINDOW, *REST] * 4) == []


def test_a_length_that_does_not_explain_the_rest_is_quiet():
    longer = LoaderMet(loader=1, name="loader", batches=8)
    unknown = LoaderMet(loader=1, name="loader", batches=None)
    for met in (longer, unknown):
        assert judge(AccumulationWindowDropped, [SGD, met, *[CLEARED, *EPOCH] * 4]) == []


def test_few_batches_left_over_are_quiet():
    met = LoaderMet(loader=1, name="loader", batches=19)
    assert judge(AccumulationWindowDropped, [SGD, met, *[CLEARED, STARTED, *WINDOW * 4, *REST] * 4]) == []


def test_what_another_optimizer_clears_is_not_this_ones():
    other = GradientsZeroed(site=START, optimizer=2, fresh=2, observed=2)
    assert judged(*[other, STARTED, *WINDOW, *FIRST, *MORE * 2, ENDED, other, STEPPED] * 4) == []


def test_an_update_by_hand_or_a_skip_of_a_scaler_uses_what_is_left():
    for used in (HandStepped(site=STEP), ScalerStepped(scaler=1, optimizer=1, skipped=True)):
        assert judged(*[STARTED, *WINDOW, *REST, used, CLEARED] * 4) == []


def test_several_losses_of_one_batch_count_once():
    batch = [*FIRST, MORE[1]]
    (finding,) = judged(*[CLEARED, STARTED, *batch, *[*MORE, MORE[1]] * 3, STEPPED, *batch, *MORE * 2, ENDED] * 4)
    assert "last 3 of the 7 batches" in finding.message


def test_a_step_per_batch_is_quiet_and_not_observed():
    assert judged(*[STARTED, *[*FIRST, STEPPED] * 7, ENDED] * 4) == []


SIZED = LoaderMet(loader=1, name="loader", batches=7, batch_size=20)
WHOLE = [*FIRST, *MORE * 3, STEPPED]
SHORT = [STARTED, *FIRST, STEPPED, *WHOLE, *FIRST, *MORE, STEPPED, ENDED]


def test_a_first_window_of_one_batch_with_a_rest_that_is_stepped_on_is_found():
    (finding,) = judge(AccumulationWindowDropped, [SGD, SIZED, *SHORT * 4])
    assert finding.primary.site == STEP
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "the first step of each epoch is made on one batch, and the others on 4"
    assert finding.seen.count == 4


def test_a_first_window_of_one_batch_that_is_the_rest_is_quiet():
    met = LoaderMet(loader=1, name="loader", batches=9, batch_size=20)
    assert judge(AccumulationWindowDropped, [SGD, met, *[STARTED, *FIRST, STEPPED, *WHOLE * 2, ENDED] * 4]) == []


def test_a_first_window_of_batches_of_any_size_is_quiet():
    assert judged(*SHORT * 4) == []


def test_windows_that_grow_are_quiet():
    epoch = [STARTED, *FIRST, STEPPED, *FIRST, *MORE, STEPPED, *WHOLE, ENDED]
    assert judge(AccumulationWindowDropped, [SGD, SIZED, *epoch * 4]) == []
