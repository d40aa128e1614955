from truestep.events import (
    LoaderEnded,
    ModelCalled,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    ScalerStepped,
    SchedulerBuilt,
    SchedulerStepped,
    Site,
)
from truestep.findings import Confidence
from truestep.rules import Progress
from truestep.rules.scheduler_before_optimizer import SchedulerBeforeOptimizer
from truestep.testing import judge

SCHEDULE, STEP = Site("train.py", 28, 4), Site("train.py", 33, 8)
MET = [
    OptimizerBuilt(optimizer=1, name="opt", parameters=(1,)),
    SchedulerBuilt(scheduler=1, name="sched", kind="ExponentialLR", optimizer=1, gamma=0.3),
]
CALLED = ModelCalled(model=1)
STEPPED = OptimizerStepped(optimizer=1, site=STEP, observed=1, fresh=1)
FIRST = SchedulerStepped(scheduler=1, site=SCHEDULE, first=True)
LATER = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=2)
EPOCH = [CALLED, STEPPED, CALLED, STEPPED]


def test_a_schedule_stepped_at_the_top_of_each_epoch_is_found():
    (finding,) = judge(SchedulerBeforeOptimizer, [*MET, FIRST, *EPOCH, LATER, *EPOCH, LATER, *EPOCH])
    assert finding.primary.site == SCHEDULE
    assert finding.related[0].site == STEP
    assert finding.help == "call `sched.step()` after `opt.step()`"
    assert (finding.seen.count, finding.seen.unit, finding.seen.first_step) == (3, "scheduler steps", 0)
    assert finding.confidence is Confidence.HIGH


def test_a_schedule_stepped_before_each_step_is_found():
    one = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1)
    (finding,) = judge(SchedulerBeforeOptimizer, [*MET, CALLED, FIRST, STEPPED, *[CALLED, one, STEPPED] * 4])
    assert finding.seen.count == 5


def test_steps_that_came_again_are_counted():
    rule, run = SchedulerBeforeOptimizer(), Progress()
    for event in [*MET, FIRST, *EPOCH, LATER]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
        run.advance(event)
    rule.again(LATER, 50)
    rule.ended(RunEnded(how="finished"), run)
    (finding,) = rule.findings(run)
    assert finding.seen.count == 52


def test_a_schedule_stepped_once_at_the_start_has_low_confidence():
    (finding,) = judge(SchedulerBeforeOptimizer, [*MET, FIRST, *EPOCH])
    assert finding.confidence is Confidence.LOW


def test_a_warm_up_by_lambda_has_medium_confidence():
    warm = [MET[0], SchedulerBuilt(scheduler=1, kind="LambdaLR", optimizer=1)]
    (finding,) = judge(SchedulerBeforeOptimizer, [*warm, FIRST, *EPOCH, LATER])
    assert finding.confidence is Confidence.MEDIUM


def test_a_schedule_stepped_after_the_optimizer_is_quiet():
    assert judge(SchedulerBeforeOptimizer, [*MET, *[*EPOCH, LATER] * 3]) == []


def test_bringing_a_schedule_to_where_a_run_stopped_is_quiet():
    resumed = SchedulerStepped(scheduler=1, site=Site("train.py", 20), first=True)
    assert judge(SchedulerBeforeOptimizer, [*MET, resumed, resumed, *[*EPOCH, LATER] * 3]) == []


def test_first_steps_that_a_scaler_skipped_are_quiet():
    skipped = ScalerStepped(scaler=1, optimizer=1, skipped=True, site=STEP)
    one = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1)
    assert judge(SchedulerBeforeOptimizer, [*MET, CALLED, skipped, FIRST, *[CALLED, STEPPED, one] * 4]) == []


def test_an_epoch_that_is_given_or_a_metric_is_quiet():
    given = [SchedulerStepped(scheduler=1, site=SCHEDULE, first=first, epoch_argument=True) for first in (True, False)]
    assert judge(SchedulerBeforeOptimizer, [*MET, given[0], *EPOCH, given[1], *EPOCH]) == []
    metric = [SchedulerStepped(scheduler=1, site=SCHEDULE, first=first, metric="float") for first in (True, False)]
    assert judge(SchedulerBeforeOptimizer, [*MET, metric[0], *EPOCH, metric[1], *EPOCH]) == []


def test_accumulation_with_a_schedule_per_batch_is_quiet():
    none = SchedulerStepped(scheduler=1, site=SCHEDULE)
    one = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=1)
    assert judge(SchedulerBeforeOptimizer, [*MET, CALLED, FIRST, CALLED, none, *[CALLED, STEPPED, one] * 3]) == []


def test_a_first_turn_without_a_step_is_quiet():
    below = Site("train.py", 40, 4)
    turn = [SchedulerStepped(scheduler=1, site=below, first=first, optimizer_steps=2 * (not first)) for first in (1, 0)]
    assert judge(SchedulerBeforeOptimizer, [*MET, turn[0], *EPOCH, turn[1], *EPOCH, turn[1]]) == []


def test_an_evaluation_before_the_first_step_leaves_doubt():
    start = [*MET, CALLED, LoaderEnded(loader=2), FIRST]
    (finding,) = judge(SchedulerBeforeOptimizer, [*start, *EPOCH, LATER, *EPOCH, LATER])
    assert finding.confidence is Confidence.LOW


def test_a_schedule_of_an_optimizer_that_never_steps_is_quiet():
    assert judge(SchedulerBeforeOptimizer, [*MET, *[FIRST] * 5]) == []
