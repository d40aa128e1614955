"""Schedules as a run knows them: which optimizer they move, at which cadence, and how long the run is."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from truestep.errors import BadSchedule, UnboundSchedule
from truestep.loop.blame import outside
from truestep.loop.declared import schedule_values
from truestep.loop.horizon import bind, is_unbound, mismatch

if TYPE_CHECKING:
    from truestep.loop.parts import Parts
    from truestep.loop.updates import Updates

Every = Literal["step", "epoch"]


@dataclass(eq=False, slots=True)
class Schedule:
    """One scheduler of a run.

    Attributes:
        name: its name in the checkpoint.
        scheduler: any scheduler of torch, or what has `step`, `state_dict` and `load_state_dict`.
        every: "step" follows the applied updates of its optimizer, "epoch" the ends of epochs.
        metric: the logged value that a plateau scheduler is stepped with; empty for the others.
        start: steps or epochs of the run, by `every`, that had passed when it was added.
        values: its arguments as it was given to the run, by path.
        groups: the values of its optimizer's groups then, which building it has changed.
    """

    name: str
    scheduler: Any
    every: Every
    metric: str = ""
    start: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)


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
            expected="the name of a value that run.log() gets once per epoch",
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
            expected=f'no metric, got metric="{metric}"',
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


class HorizonWarning(UserWarning):
    """A schedule is not as long as the run."""


def bind_all(parts: Parts, batches: int | None, max_epochs: int | None, max_steps: int | None) -> None:
    """Tell every schedule of a run how long the run is, and warn where one has another length.

    Args:
        parts: what belongs to the run.
        batches: in one epoch; None where nobody knows.
        max_epochs: of the run; None for no limit.
        max_steps: of the run; None for no limit.

    Raises:
        UnboundSchedule: a schedule takes its length from the run, and the run does not know it.
    """
    for updates in parts.updates.values():
        for schedule in updates.schedules:
            bind_one(schedule, updates, batches, max_epochs, max_steps)


def bind_one(
    schedule: Schedule, updates: Updates, batches: int | None, max_epochs: int | None, max_steps: int | None
) -> None:
    """Tell a schedule how long the run is from where it was added; see `bind_all`."""
    steps = max_steps
    if batches is not None and max_epochs is not None:
        counted = max_epochs * math.ceil(batches / updates.window.accumulate)
        steps = counted if steps is None else min(steps, counted)
    total, other = (steps, max_epochs) if schedule.every == "step" else (max_epochs, steps)
    if total is None:
        if is_unbound(schedule.scheduler):
            raise UnboundSchedule(
                f'the schedule "{schedule.name}" takes its length from the run, which does not know it',
                expected="max_steps, or max_epochs and a loader of known length",
                remedy="pass max_steps=... to Run, or total_steps=... to the schedule",
            )
        return
    total = max(1, total - schedule.start)
    bind(schedule.scheduler, total)
    sentence = mismatch(schedule.scheduler, total, schedule.every, other or 0)
    if sentence:
        warnings.warn(f'schedule "{schedule.name}": {sentence}', HorizonWarning, stacklevel=outside())
