import pytest

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    LearningRateRead,
    LoaderEnded,
    LoaderMet,
    LoaderStarted,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    SchedulerBuilt,
    SchedulerStepped,
    Site,
)
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.scheduler_wrong_cadence import SchedulerWrongCadence
from truestep.testing import judge

SCHEDULE, MADE = Site("train.py", 34, 8), Site("train.py", 26)
OPTIMIZER = OptimizerBuilt(optimizer=1, name="opt", parameters=(1,))
BACK = BackwardEnded(loader=1, written=1)
STEPPED = OptimizerStepped(optimizer=1, observed=1, fresh=1)
PER_STEP = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1)
PER_EPOCH = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=2)


def schedule(kind, **facts):
    return SchedulerBuilt(scheduler=1, name="sched", kind=kind, optimizer=1, site=MADE, **facts)


def run_of(built, *, epochs, batches, per_step, loader=True):
    number = 1 if loader else None
    step = [BatchDrawn(loader=1)] * loader + [BackwardEnded(loader=number, written=1), STEPPED] + [PER_STEP] * per_step
    epoch = [LoaderStarted(loader=1)] * loader + step * batches + [PER_EPOCH] * (not per_step)
    return [OPTIMIZER, built, LoaderMet(loader=1, batches=batches), *epoch * epochs]


def shown(findings):
    return [finding for finding in findings if finding.confidence is not Confidence.LOW]


def test_a_cosine_of_epochs_stepped_per_batch_is_found_within_the_first_epoch():
    events = run_of(schedule("CosineAnnealingLR", horizon=10), epochs=1, batches=64, per_step=True)
    (finding,) = judge(SchedulerWrongCadence, events, ended="stopped")
    assert finding.primary.site == SCHEDULE
    assert finding.related[0].site == MADE
    assert finding.confidence is Confidence.HIGH
    assert (finding.seen.count, finding.seen.unit) == (64, "scheduler steps")
    assert finding.cost == "in 64 steps through a schedule of 10, the lr began to rise 3 times"
    assert "sched.step()" in finding.help


def test_a_loader_that_is_begun_for_each_batch_does_not_count_epochs():
    other = [LoaderStarted(loader=2), BatchDrawn(loader=2)]
    step = [BatchDrawn(loader=1), *other, BackwardEnded(loader=2, written=1), STEPPED, PER_STEP]
    epoch = [LoaderStarted(loader=1), *step * 10, LoaderEnded(loader=1)]
    met = [OPTIMIZER, schedule("CosineAnnealingLR", horizon=6), LoaderMet(loader=1, batches=10)]
    (finding,) = judge(SchedulerWrongCadence, [*met, LoaderMet(loader=2, batches=11), *epoch * 6])
    assert finding.confidence is Confidence.HIGH


def test_a_cosine_of_more_epochs_than_batches_is_found_at_the_end():
    events = run_of(schedule("CosineAnnealingLR", horizon=40), epochs=40, batches=8, per_step=True)
    (finding,) = judge(SchedulerWrongCadence, events)
    assert finding.confidence is Confidence.HIGH


def test_a_length_by_the_name_of_epochs_needs_no_loader():
    built = schedule("CosineAnnealingLR", horizon=8, of_epochs=True)
    (finding,) = judge(SchedulerWrongCadence, run_of(built, epochs=8, batches=13, per_step=True, loader=False))
    assert finding.confidence is Confidence.HIGH
    assert finding.cost == "104 scheduler steps were made through a length of 8, which counts epochs by its name"
    assert "once per epoch" in finding.help
    assert judge(SchedulerWrongCadence, run_of(built, epochs=8, batches=13, per_step=False, loader=False)) == []


def test_a_length_in_updates_that_is_stepped_per_epoch_needs_no_loader():
    built = schedule("LinearLR", horizon=104, falls=True)
    (finding,) = judge(SchedulerWrongCadence, run_of(built, epochs=8, batches=13, per_step=False, loader=False))
    assert finding.confidence is Confidence.HIGH
    assert finding.help == "call `sched.step()` after every `opt.step()`"


def test_a_length_in_whole_batches_needs_no_loader():
    for horizon, epochs, confidence in ((220, 20, Confidence.HIGH), (216, 20, Confidence.LOW), (88, 8, Confidence.LOW)):
        built = schedule("CosineAnnealingLR", horizon=horizon)
        (finding,) = judge(
            SchedulerWrongCadence, run_of(built, epochs=epochs, batches=12, per_step=False, loader=False)
        )
        assert finding.confidence is confidence


def test_steps_that_came_again_are_counted():
    rule, run = SchedulerWrongCadence(), Progress()
    built = schedule("CosineAnnealingLR", horizon=10)
    for event in run_of(built, epochs=1, batches=4, per_step=True):
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
        run.advance(event)
    for event in (BatchDrawn(loader=1), STEPPED, PER_STEP):
        rule.again(event, 36)
    run.loaders[1] = LoaderMet(loader=1, batches=40)
    rule.ended(RunEnded(how="stopped"), run)
    (finding,) = rule.findings(run)
    assert finding.seen.count == 40


def test_a_polynomial_that_ended_early_is_found():
    events = run_of(schedule("PolynomialLR", horizon=5), epochs=1, batches=20, per_step=True)
    (finding,) = judge(SchedulerWrongCadence, events, ended="stopped")
    assert finding.cost == "the last 15 of 20 scheduler steps left the lr at 0"
    assert finding.confidence is Confidence.HIGH


def test_milestones_of_epochs_stepped_per_batch_are_found_at_the_end():
    events = run_of(schedule("MultiStepLR", horizon=9), epochs=10, batches=20, per_step=True)
    (finding,) = judge(SchedulerWrongCadence, events)
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "built", [schedule("StepLR", step_size=5, gamma=0.1), schedule("ExponentialLR", gamma=0.5)], ids=lambda b: b.kind
)
def test_a_decay_that_kills_the_lr_within_an_epoch_is_found(built):
    (finding,) = judge(SchedulerWrongCadence, run_of(built, epochs=1, batches=40, per_step=True), ended="stopped")
    assert "all but vanished" in finding.message
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize("kind", ["OneCycleLR", "CosineAnnealingLR"])
def test_a_schedule_of_steps_stepped_per_epoch_is_found_at_the_end(kind):
    events = run_of(schedule(kind, horizon=200), epochs=10, batches=20, per_step=False)
    (finding,) = judge(SchedulerWrongCadence, events)
    assert finding.cost == "10 of 200 scheduler steps were made in 200 optimizer steps"
    assert "after every `opt.step()`" in finding.help
    assert finding.confidence is Confidence.HIGH
    assert judge(SchedulerWrongCadence, events, ended="stopped") == []


def test_early_stopping_is_not_shown():
    events = run_of(schedule("CosineAnnealingLR", horizon=101), epochs=8, batches=20, per_step=False)
    assert shown(judge(SchedulerWrongCadence, events)) == []


@pytest.mark.parametrize(
    ("built", "per_step"),
    [
        (schedule("CosineAnnealingLR", horizon=10), False),
        (schedule("CosineAnnealingLR", horizon=200), True),
        (schedule("OneCycleLR", horizon=200), True),
        (schedule("CosineAnnealingWarmRestarts", horizon=10, periodic=True), True),
        (schedule("MultiStepLR", horizon=6), False),
        (schedule("MultiStepLR", horizon=150), True),
        (schedule("LinearLR", horizon=5), True),
        (schedule("ConstantLR", horizon=5), False),
        (schedule("StepLR", step_size=3, gamma=0.1), False),
        (schedule("ExponentialLR", gamma=0.99), True),
        (schedule("LambdaLR"), True),
        (schedule("PolynomialLR", horizon=10), False),
    ],
    ids=lambda value: getattr(value, "kind", str(value)),
)
def test_schedules_that_fit_are_quiet(built, per_step):
    assert judge(SchedulerWrongCadence, run_of(built, epochs=10, batches=20, per_step=per_step)) == []


def test_cosines_meant_to_go_round_from_epoch_to_epoch_are_not_shown():
    events = run_of(schedule("CosineAnnealingLR", horizon=5), epochs=40, batches=20, per_step=False)
    assert shown(judge(SchedulerWrongCadence, events)) == []


def test_fractional_epochs_are_quiet():
    given = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1, epoch_argument=True)
    events = [
        OPTIMIZER,
        schedule("CosineAnnealingLR", horizon=3),
        LoaderMet(loader=1, batches=50),
        LoaderStarted(loader=1),
    ]
    assert judge(SchedulerWrongCadence, [*events, *[BACK, STEPPED, given] * 50]) == []


def test_training_on_the_whole_set_at_once_is_not_shown():
    events = run_of(schedule("CosineAnnealingLR", horizon=50), epochs=200, batches=1, per_step=True, loader=False)
    assert shown(judge(SchedulerWrongCadence, events)) == []


def test_a_stream_without_epochs_is_not_shown():
    events = [OPTIMIZER, schedule("CosineAnnealingLR", horizon=50), LoaderMet(loader=1), LoaderStarted(loader=1)]
    assert shown(judge(SchedulerWrongCadence, [*events, *[BatchDrawn(loader=1), BACK, STEPPED, PER_STEP] * 300])) == []


def test_a_sequence_that_ends_in_a_cosine_and_is_stepped_per_batch_is_found():
    built = schedule("SequentialLR", horizon=10, tail="CosineAnnealingLR", tail_horizon=8)
    (finding,) = judge(SchedulerWrongCadence, run_of(built, epochs=10, batches=25, per_step=True))
    assert finding.confidence is Confidence.HIGH
    assert finding.cost == "in 250 steps through a schedule of 10, the lr began to rise 15 times"


@pytest.mark.parametrize(
    ("built", "epochs", "batches", "per_step"),
    [
        (schedule("CosineAnnealingLR", horizon=3), 66, 3, False),
        (schedule("CosineAnnealingLR", horizon=10), 24, 10, True),
        (schedule("CosineAnnealingLR", horizon=100), 12, 10, False),
        (schedule("OneCycleLR", horizon=800), 5, 20, True),
    ],
    ids=["waves over epochs", "a wave per epoch", "early stop, epochs", "early stop, steps"],
)
def test_waves_on_purpose_and_early_stops_are_not_shown(built, epochs, batches, per_step):
    events = run_of(built, epochs=epochs, batches=batches, per_step=per_step)
    assert shown(judge(SchedulerWrongCadence, events)) == []


def test_a_schedule_of_batches_stepped_once_per_window_is_found():
    micro = [BatchDrawn(loader=1), BACK]
    epoch = [LoaderStarted(loader=1), *[*micro * 8, STEPPED, PER_STEP] * 5]
    events = [OPTIMIZER, schedule("OneCycleLR", horizon=160), LoaderMet(loader=1, batches=40), *epoch * 4]
    (finding,) = shown(judge(SchedulerWrongCadence, events))
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "built", [schedule("MultiStepLR", horizon=7, falls=True), schedule("LinearLR", horizon=10, falls=True)]
)
def test_milestones_and_lines_of_epochs_stepped_per_batch_are_found_at_the_end(built):
    events = run_of(built, epochs=10, batches=20, per_step=True)
    (finding,) = judge(SchedulerWrongCadence, events)
    assert finding.message == "a schedule made for epochs was stepped for every batch"
    assert finding.confidence is Confidence.HIGH
    assert judge(SchedulerWrongCadence, events, ended="stopped") == []


@pytest.mark.parametrize(
    ("built", "epochs"),
    [
        (schedule("LinearLR", horizon=10), 10),
        (schedule("LinearLR", horizon=10, falls=True), 40),
        (schedule("MultiStepLR", horizon=7, falls=True), 40),
        (schedule("MultiStepLR", horizon=150, falls=True), 10),
    ],
    ids=["a warm-up", "a line much shorter than the run", "early milestones", "milestones of steps"],
)
def test_ends_that_are_no_number_of_epochs_are_quiet(built, epochs):
    assert judge(SchedulerWrongCadence, run_of(built, epochs=epochs, batches=20, per_step=True)) == []


def rated(*rates, loader=True):
    step = [BatchDrawn(loader=1)] * loader + [BackwardEnded(loader=1 if loader else None, written=1), STEPPED]
    events = [OPTIMIZER, schedule("LambdaLR"), LoaderMet(loader=1, batches=100), LoaderStarted(loader=1)]
    for rate in rates:
        events += step
        events.append(SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1, rate=rate))
    return events


def test_a_vanished_lr_for_half_of_the_steps_is_found_in_the_run():
    (finding,) = judge(SchedulerWrongCadence, rated(*[""] * 25, *["vanished"] * 25), ended="stopped")
    assert finding.cost == "the latest 25 of 50 scheduler steps left less than a millionth of the first lr"
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "rates",
    [[""] * 40 + ["vanished"] * 30, ([""] * 10 + ["vanished"] * 15) * 3, [""] * 5 + ["vanished"] * 10],
    ids=["the end of a run", "waves", "a few steps"],
)
def test_an_lr_that_vanished_late_or_for_a_while_is_quiet(rates):
    assert judge(SchedulerWrongCadence, rated(*rates)) == []


def test_a_vanished_lr_without_passes_over_data_needs_more_steps():
    (finding,) = judge(SchedulerWrongCadence, rated(*[""] * 25, *["vanished"] * 50, loader=False))
    assert finding.confidence is Confidence.MEDIUM
    assert judge(SchedulerWrongCadence, rated(*[""] * 25, *["vanished"] * 40, loader=False)) == []


def lasting(*rates, counts=(26, 104)):
    reads = [LearningRateRead(optimizer=1, rates=(rate,)) for rate in rates]
    events = run_of(schedule("LambdaLR", counts=counts), epochs=8, batches=13, per_step=False, loader=False)
    return [*events[:2], *(event for read in reads for event in (read, STEPPED)), *events[2:]]


def test_a_function_that_counts_to_the_number_of_updates_and_gets_passes_is_found():
    (finding,) = judge(SchedulerWrongCadence, lasting(0.01, 0.02, 0.03))
    assert finding.confidence is Confidence.MEDIUM
    assert finding.cost == "its function counts to 104, the number of updates, and got 8 in 107 optimizer steps"


@pytest.mark.parametrize(
    "events",
    [lasting(0.03, 0.02, 0.001), lasting(0.01, 0.02, counts=(8,)), lasting(0.01, 0.02, counts=(13, 104)), lasting()],
    ids=["it fell", "it counts passes", "it converts passes", "rates that were not read"],
)  # fmt: skip
def test_functions_that_fit_are_quiet(events):
    assert judge(SchedulerWrongCadence, events) == []


def test_a_negative_lr_is_found():
    (finding,) = judge(SchedulerWrongCadence, rated("", "", "negative", "negative", "negative"), ended="stopped")
    assert finding.cost == "3 of 5 scheduler steps left the lr below 0"
    assert judge(SchedulerWrongCadence, rated("", "", "negative")) == []


def warming(*rates, batches=20):
    epoch = [LoaderStarted(loader=1), *[BatchDrawn(loader=1), BACK, STEPPED] * batches]
    events = [OPTIMIZER, schedule("LambdaLR"), LoaderMet(loader=1, batches=batches)]
    for rate in rates:
        events += epoch
        events.append(SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=2, rate=rate))
    return events


def test_a_warm_up_that_outlasts_the_run_is_found_at_its_end():
    (finding,) = judge(SchedulerWrongCadence, warming(*["warming"] * 4))
    assert finding.cost == ("in 4 scheduler steps and 80 optimizer steps the lr never exceeded a tenth of the first")
    assert finding.confidence is Confidence.MEDIUM
    assert judge(SchedulerWrongCadence, warming(*["warming"] * 4), ended="interrupted") == []


@pytest.mark.parametrize(
    "events",
    [
        warming("warming", "warming", "warming", ""),
        warming("warming", "warming"),
        warming(*["warming"] * 4, batches=2),
        rated(*["warming"] * 50),
    ],
    ids=["it rose", "two epochs", "tiny epochs", "per step, stopped early"],
)
def test_warm_ups_that_end_or_that_a_short_run_leaves_are_quiet(events):
    assert judge(SchedulerWrongCadence, events) == []


@pytest.mark.parametrize(
    ("built", "confidence"),
    [
        (schedule("StepLR", step_size=600, gamma=0.1), Confidence.MEDIUM),
        (schedule("MultiStepLR", horizon=600, falls=True), Confidence.MEDIUM),
        (schedule("LinearLR", horizon=150), Confidence.MEDIUM),
        (schedule("StepLR", step_size=601, gamma=0.1), Confidence.LOW),
        (schedule("StepLR", step_size=60, gamma=0.1), Confidence.LOW),
        (schedule("LinearLR", horizon=90), Confidence.LOW),
    ],
)
def test_steps_counted_in_whole_passes_and_stepped_per_epoch_are_found(built, confidence):
    (finding,) = judge(SchedulerWrongCadence, run_of(built, epochs=10, batches=30, per_step=False))
    assert finding.confidence is confidence
