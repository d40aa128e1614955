"""The schedules of a run: scheduler, cadence and metric."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from truestep.errors import BadSchedule, MetricMissing
from truestep.loop.checkpoint.declared import schedule_values
from truestep.loop.process.stacklevel import outside

if TYPE_CHECKING:
    from truestep.loop.log.logs import Logs

Every = Literal["step", "epoch"]


class HorizonWarning(UserWarning):
    """A schedule is not as long as the run."""


@dataclass(eq=False, slots=True)
class Schedule:
    """One scheduler of a run.

    Attributes:
        name: its name in the checkpoint.
        scheduler: any scheduler of torch, or an object with `step`, `state_dict` and `load_state_dict`.
        every: "step" follows the applied updates of its optimizer, "epoch" the ends of epochs.
        metric: the logged value that a plateau scheduler is stepped with; empty for the others.
        start: steps or epochs of the run, by `every`, that had passed when it was added.
        values: its arguments as it was given to the run, by path.
        groups: the values of its optimizer's groups then, which building it has changed.
        end: number of updates after which it is constant, if the run set its length; else None.
    """

    name: str
    scheduler: Any
    every: Every
    metric: str = ""
    start: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    end: int | None = None

    def warn_of_end(self) -> None:
        """Warn that an update was made after the last one that the schedule was planned for."""
        warnings.warn(
            f'schedule "{self.name}" is past its end: the run makes more than the {self.end} updates that follow from '
            "its batches and accumulate=; pass total_steps= with the number of updates",
            HorizonWarning,
            stacklevel=outside(),
        )


def planned(name: str, scheduler: Any, every: str, metric: str) -> Schedule:
    """Check how a scheduler is to be stepped.

    Raises:
        BadSchedule: an unknown cadence, a plateau scheduler without metric, or a metric that no plateau needs.
    """
    kind = type(scheduler).__name__
    if every not in ("step", "epoch"):
        raise BadSchedule(
            f'"{every}" is not a cadence', expected='expected "step" or "epoch"', remedy='pass every="step"'
        )
    plateau = "metrics" in inspect.signature(scheduler.step).parameters
    if plateau and not metric:
        raise BadSchedule(
            f"{kind} was given no metric",
            expected="expected the name of a value that run.log() gets once per epoch",
            remedy='pass metric="val_loss", every="epoch"',
        )
    if plateau and every == "step":
        raise BadSchedule(
            f"{kind} follows a metric, which there is once per epoch",
            expected='expected every="epoch", got every="step"',
            remedy='pass every="epoch"',
        )
    if metric and not plateau:
        raise BadSchedule(
            f"{kind} does not follow a metric",
            expected=f'expected no metric, got metric="{metric}"',
            remedy="leave metric= out",
        )
    groups = [{key: group[key] for key in group if key != "params"} for group in scheduler.optimizer.param_groups]
    return Schedule(
        name,
        scheduler,
        "step" if every == "step" else "epoch",
        metric,
        values=schedule_values(scheduler),
        groups=copy.deepcopy(groups),
    )


def step_after_epoch(schedules: Iterable[Schedule], logs: Logs, of_first: Callable[[Any], Any]) -> None:
    """Step the schedules with `every="epoch"`, those of a metric with its last logged value.

    Args:
        schedules: of the run.
        logs: with the metrics.
        of_first: returns the value of rank 0, which all ranks use.

    Raises:
        MetricMissing: a metric was not logged in this epoch.
    """
    by_epoch = [schedule for schedule in schedules if schedule.every == "epoch"]
    if any(schedule.metric for schedule in by_epoch):
        logs.flush()
    for schedule in by_epoch:
        if not schedule.metric:
            schedule.scheduler.step()
        elif schedule.metric in logs.last:
            schedule.scheduler.step(of_first(logs.last[schedule.metric]))
        else:
            raise MetricMissing(
                f'the schedule "{schedule.name}" follows "{schedule.metric}", which was not logged in this epoch',
                expected=f"expected a value every epoch; logged so far: {sorted(logs.last)}",
                remedy=f'write run.log({{"{schedule.metric}": value}}) in the body of the epoch',
            )
