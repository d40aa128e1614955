import pytest

from truestep.events import (
    LearningRateRead,
    OptimizerBuilt,
    OptimizerStepped,
    RateComputed,
    RunEnded,
    SchedulerBuilt,
    Site,
)
from truestep.findings import Confidence
from truestep.rules.learning_rate_off_course import LearningRateOffCourse
from truestep.testing import judge

BUILT, SET = Site("train.py", 5), Site("train.py", 9)
SGD = OptimizerBuilt(optimizer=1, name="optimizer", kind="SGD", lr=0.1, site=BUILT)
END = RunEnded(how="finished")


def updates(*rates, site=SET, between=10):
    """Return the events of steps that use these learning rates, with other steps between them."""
    step = OptimizerStepped(optimizer=1, fresh=1, observed=1)
    read = [LearningRateRead(optimizer=1, rates=one if isinstance(one, tuple) else (one,), site=site) for one in rates]
    return [SGD, *[event for one in read for event in (one, *[step] * between)]]


def test_a_negative_rate_is_found_at_the_line_that_sets_it():
    (finding,) = judge(LearningRateOffCourse, [*updates(0.1, 0.05, -0.02), END])
    assert finding.primary.site == SET
    assert finding.confidence is Confidence.HIGH
    assert finding.message == "the learning rate of `optimizer` became negative: its steps increase the loss"
    assert finding.cost == "-0.02 at update 20 of 30"


def test_a_rate_that_vanishes_in_the_first_half():
    (finding,) = judge(LearningRateOffCourse, [*updates(0.1, 1e-9, 1e-12, 1e-15, site=None), END])
    assert finding.primary.site == BUILT
    assert finding.message == "the learning rate of `optimizer` had vanished long before the end of the run"
    assert finding.cost == "1e-09 from update 10 of 40 on, 0.1 at first"


def test_a_rate_that_fell_to_zero_in_the_first_half():
    (finding,) = judge(LearningRateOffCourse, [*updates(0.1, 0.06, 0.03, 0.0, 0.0, 0.0, 0.0), END])
    assert finding.cost == "0 from update 30 of 70 on, 0.1 at first"
    other = [OptimizerBuilt(optimizer=2, lr=0.1), *[OptimizerStepped(optimizer=2, fresh=1, observed=1)] * 9]
    assert judge(LearningRateOffCourse, [*other, *updates(0.1, 0.06, 0.03, 0.0, 0.0, 0.0, 0.0), END]) == []


def steps(*rates, each=20):
    """Return the events of a course in steps, each read in two updates in a row."""
    step = OptimizerStepped(optimizer=1, fresh=1, observed=1)
    read = [LearningRateRead(optimizer=1, rates=(rate,), site=SET) for rate in rates]
    return [SGD, *[event for one in read for event in (one, *[step] * (each - 1), one, step)]]


def test_a_decay_that_is_turned_round():
    (finding,) = judge(LearningRateOffCourse, [*steps(*[0.1 * part / 20 for part in range(20)]), END])
    assert (finding.primary.site, finding.confidence) == (SET, Confidence.MEDIUM)
    assert finding.message == "the learning rate of `optimizer` rose from 0 to its full value over the whole run"
    assert finding.cost == "0 for the first updates, 0.095 after 400"


@pytest.mark.parametrize(
    "events",
    [
        steps(*[0.1 * (1 - part / 20) for part in range(20)]),
        steps(*[0.1 * part / 20 for part in range(9)]),
        steps(*[0.1 * part / 9 for part in range(10)], *[0.1] * 10),
        steps(*[0.1 * (part + 1) / 20 for part in range(20)]),
        updates(*[0.1 * part / 300 for part in range(300)], between=1),
    ],
    ids=["decay", "short run", "warm-up", "not from zero", "test of rates"],
)
def test_other_courses_are_quiet(events):
    assert judge(LearningRateOffCourse, [*events, END]) == []


def test_a_group_that_keeps_the_peak_of_the_others():
    (finding,) = judge(LearningRateOffCourse, [*updates((0.1, 0.02), (0.1, 0.1), (0.1, 0.04)), END])
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "the learning rate of 1 of 2 groups of `optimizer` was never changed"
    assert finding.cost == "they kept 0.1, the peak of the others, which ended with 0.04"


@pytest.mark.parametrize(
    "events",
    [
        [*updates(0.1, 0.05, 0.001), END],
        [*updates(0.1, 0.1, 0.1, 1e-9), END],
        [*updates(0.1, 1e-9, 1e-9, 0.1), END],
        [*updates(0.1, 0.0, 0.0), END],
        [*updates(0.1, -0.02), RunEnded(how="interrupted")],
        [*updates(0.1, 0.05), LearningRateRead(optimizer=1, rates=(-0.01,)), END],
        [*updates((0.01, 0.02), (0.01, 0.1), (0.01, 0.04)), END],
        [*updates((0.1, 0.1), (0.1, 0.01)), END],
        [*updates((0.1, 0.02), (0.1, 0.1), (0.1, 0.04)), SchedulerBuilt(scheduler=1, optimizer=1), END],
        [*updates(0.1, -0.02, between=1), END],
    ],
    ids=[
        "a decay", "low at the end", "a pause", "turned off", "interrupted", "below zero after the last step",
        "a slow group", "one change", "a schedule of torch", "few updates",
    ],
)  # fmt: skip
def test_healthy_rates(events):
    assert judge(LearningRateOffCourse, events) == []


def test_a_warm_up_that_outlasts_the_run_is_found():
    rising = [1e-4 * (1 + 10 * number) for number in range(8)]
    (finding,) = judge(LearningRateOffCourse, [*updates(*rising), END])
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "the run ended in the warm-up of the learning rate of `optimizer`"
    assert finding.cost == "0.0071 at update 70 of 80, 0.071 of its rate"
    far, held = [5 * rate for rate in rising], [*rising, rising[-1]]
    exponential = [1e-5 * 2**number for number in range(8)]
    for rates in (far, held, exponential, rising[:4]):
        assert judge(LearningRateOffCourse, [*updates(*rates), END]) == []


def test_a_warm_up_with_its_peak_between_two_reads_is_quiet():
    rising = updates(*[1e-4 * (1 + 10 * number) for number in range(8)])
    for last, number in ((0.0081, 1), (0.0072, 0)):
        found = judge(LearningRateOffCourse, [*rising, LearningRateRead(optimizer=1, rates=(last,)), END])
        assert len(found) == number


def test_a_short_trial_that_ends_in_the_warm_up_is_quiet():
    for between, seen in ((6, []), (7, [Confidence.MEDIUM])):
        rising = [1e-4 * (1 + between * number) for number in range(8)]
        found = judge(LearningRateOffCourse, [*updates(*rising, between=between), END])
        assert [finding.confidence for finding in found] == seen


def computed(*rates, name="lr", place=Site("train.py", 7)):
    """Return the events of steps with a constant rate of 0.1 beside rates that the script computes."""
    read = [RateComputed(optimizer=1, name=name, rate=rate, site=place) for rate in rates]
    steps = updates(*[0.1] * len(rates), site=None, between=5)[1:]
    return [SGD, *[one for n, first in enumerate(read) for one in (first, *steps[6 * n : 6 * n + 6])]]


def test_a_computed_rate_that_the_optimizer_never_gets():
    (finding,) = judge(LearningRateOffCourse, [*computed(0.1, 0.05, 0.02), END])
    assert finding.primary.site == Site("train.py", 7)
    assert finding.confidence is Confidence.MEDIUM
    assert finding.message == "the computed learning rate `lr` never reaches `optimizer`"
    assert finding.cost == "the optimizer kept 0.1 in all 15 updates, while `lr` ran between 0.02 and 0.1"
    (finding,) = judge(LearningRateOffCourse, [*computed(0.1, 0.05, 0.02, name="optimizer.lr", place=None), END])
    assert finding.primary.site == BUILT


def test_computed_rates_of_others():
    other = [LearningRateRead(optimizer=2, rates=(rate,)) for rate in (0.1, 0.05)]
    moving = [event for one in other for event in (one, OptimizerStepped(optimizer=2, fresh=1, observed=1))]
    schedule = SchedulerBuilt(scheduler=1, optimizer=1)
    unlike, constant, once = computed(0.8, 1.2, 1.5), computed(0.1, 0.1, 0.1), computed(0.1, 0.05)
    for events in (
        unlike,
        constant,
        once,
        [*moving, *computed(0.1, 0.05, 0.02)],
        [schedule, *computed(0.1, 0.05, 0.02)],
    ):
        assert judge(LearningRateOffCourse, [*events, END]) == []
    assert judge(LearningRateOffCourse, [*computed(0.1, 0.05, 0.02), RunEnded(how="interrupted")]) == []
