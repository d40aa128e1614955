import pytest

from truestep.events import (
    BackwardEnded,
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
from truestep.rules.plateau_without_metric import PlateauWithoutMetric
from truestep.testing import judge

SCHEDULE, MADE = Site("train.py", 33, 8), Site("train.py", 23)
BUILT = SchedulerBuilt(
    scheduler=1, name="sched", kind="ReduceLROnPlateau", optimizer=1, mode="min", patience=5, site=MADE
)
MET = [OptimizerBuilt(optimizer=1, parameters=(1,)), BUILT]
START = LoaderStarted(loader=1)
BACK = BackwardEnded(loader=1, written=1)
STEPPED = OptimizerStepped(optimizer=1, observed=1, fresh=1)


def plateau(steps, *, loss=True):
    return SchedulerStepped(
        scheduler=1, site=SCHEDULE, optimizer_steps=steps, metric="float", metric_is_training_loss=loss
    )


def shown(findings):
    return [finding for finding in findings if finding.confidence is not Confidence.LOW]


def test_the_loss_of_each_batch_is_found():
    (finding,) = judge(PlateauWithoutMetric, [*MET, *[START, *[BACK, STEPPED, plateau(1)] * 16] * 3])
    assert finding.primary.site == SCHEDULE
    assert finding.related[0].site == MADE
    assert "patience of 5" in finding.related[0].label
    assert (finding.seen.count, finding.seen.total, finding.seen.unit) == (48, 48, "scheduler steps")
    assert finding.confidence is Confidence.HIGH
    assert "sched" in finding.help


def test_steps_that_came_again_are_counted_even_in_a_run_that_was_stopped():
    rule, run = PlateauWithoutMetric(), Progress()
    for event in [*MET, START, *[BACK, STEPPED, plateau(1)] * 4]:
        run.note(event)
        if isinstance(event, rule.watches):
            rule.observe(event, run)
        run.advance(event)
    rule.again(plateau(1), 60)
    rule.ended(RunEnded(how="stopped"), run)
    (finding,) = rule.findings(run)
    assert (finding.seen.count, finding.confidence) == (64, Confidence.HIGH)


def test_the_loss_of_the_last_batch_of_each_epoch_is_found():
    (finding,) = judge(PlateauWithoutMetric, [*MET, *[START, *[BACK, STEPPED] * 4, plateau(2)] * 5])
    assert finding.confidence is Confidence.MEDIUM


def test_waiting_for_a_loss_to_rise_is_found():
    upward = SchedulerBuilt(scheduler=1, kind="ReduceLROnPlateau", optimizer=1, mode="max", patience=5)
    (finding,) = judge(PlateauWithoutMetric, [MET[0], upward, *[BACK, STEPPED, plateau(1)] * 5])
    assert '"max"' in finding.primary.label


def test_a_metric_per_epoch_is_quiet():
    events = [*MET, *[START, *[BACK, STEPPED] * 4, plateau(2, loss=False)] * 30]
    assert judge(PlateauWithoutMetric, events) == []


def test_a_running_mean_per_batch_is_quiet():
    assert judge(PlateauWithoutMetric, [*MET, START, *[BACK, STEPPED, plateau(1, loss=False)] * 60]) == []


def test_training_on_the_whole_set_at_once_is_not_shown():
    whole = BackwardEnded(loader=None, written=1)
    assert shown(judge(PlateauWithoutMetric, [*MET, *[whole, STEPPED, plateau(1)] * 60])) == []


def test_one_batch_per_epoch_is_not_shown():
    assert shown(judge(PlateauWithoutMetric, [*MET, *[START, BACK, STEPPED, plateau(1)] * 60])) == []


def test_few_steps_are_quiet():
    assert judge(PlateauWithoutMetric, [*MET, START, *[BACK, STEPPED, plateau(1)] * 10]) == []


def test_a_run_without_such_a_schedule_is_not_observed():
    rule, run = PlateauWithoutMetric(), Progress()
    run.note(SchedulerBuilt(scheduler=1, kind="StepLR"))
    run.note(SchedulerStepped(scheduler=1))
    assert rule.verdict(run).reason == "no step of a ReduceLROnPlateau"


def named(name, metric="float", mode="min", steps=6):
    built = SchedulerBuilt(scheduler=1, name="sched", kind="ReduceLROnPlateau", optimizer=1, mode=mode)
    stepped = SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=2, metric=metric, metric_name=name)
    events = [OptimizerBuilt(optimizer=1, parameters=(1,)), built, *[START, *[BACK, STEPPED] * 4, stepped] * steps]
    return judge(PlateauWithoutMetric, events)


def test_a_metric_for_the_other_mode_is_found_by_its_name():
    (finding,) = named("val_acc")
    assert finding.confidence is Confidence.MEDIUM
    assert finding.primary.label == 'mode is "min", and `val_acc` is to rise'
    assert named("self.val_loss", mode="max")
    assert not named("val_loss") + named("val_acc", mode="max") + named("metrics") + named("val_acc", steps=2)


@pytest.mark.parametrize("name", ["val_ap", "scores.map", "r2", "val_acc1", "history['ndcg'][-1]"])
def test_other_names_of_metrics_that_rise_are_known(name):
    assert len(named(name)) == 1


@pytest.mark.parametrize(
    "name",
    [
        "mean(map(evaluate, parts))",
        "depth_map_l1",
        "val.gap_to_map_estimate()",
        "mape",
        "map_error",
        "1 - val_dice_loss",
    ],
)
def test_names_with_these_words_that_fall_are_quiet(name):
    assert named(name) == []


@pytest.mark.parametrize("name", ["gap", "class_distance", "improvement_diff"])
def test_names_that_can_be_to_fall_or_to_rise_are_quiet(name):
    assert named(name) + named(name, mode="max") == []


def test_the_number_of_the_epoch_is_found():
    (finding,) = named("epoch", metric="count")
    assert finding.message == "ReduceLROnPlateau was stepped with a count instead of a metric"
    assert named("epoch", metric="count", steps=3) == []


def test_a_metric_that_falls_is_found_in_the_other_mode_whatever_its_name():
    built = SchedulerBuilt(scheduler=1, name="sched", kind="ReduceLROnPlateau", optimizer=1, mode="max", site=MADE)

    def stepped(metric, name="history[-1]"):
        return SchedulerStepped(scheduler=1, site=SCHEDULE, optimizer_steps=2, metric=metric, metric_name=name)

    epochs = [START, BACK, STEPPED, stepped("float")] * 5
    (finding,) = judge(PlateauWithoutMetric, [MET[0], built, *epochs, stepped("falling")])
    assert "`history[-1]` falls" in finding.primary.label
    assert not judge(PlateauWithoutMetric, [MET[0], built, *epochs, stepped("falling"), stepped("float")])
    assert not judge(PlateauWithoutMetric, [MET[0], built, *epochs, stepped("falling", "accuracy")])
    assert not judge(PlateauWithoutMetric, [*MET, *epochs, stepped("falling")])
