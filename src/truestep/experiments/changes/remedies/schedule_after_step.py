"""The remedy for schedules that are stepped before their optimizer: skip their first step."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from truestep.experiments.changes.parts.schedules import Scheduled, optimizer_of


class ScheduleAfterStep(Scheduled):
    """The first step of a schedule at the line of the finding, before any step of the optimizer, is skipped.

    From then on each of its steps sets the rate that it would set if it came after those of the optimizer.
    """

    name = "schedule-after-step"
    remedies = ("scheduler-before-optimizer",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waited: weakref.WeakSet[Any] = weakref.WeakSet()

    def stepped(self, scheduler: Any, step: Callable[[], Any], values: tuple[Any, ...], frame: FrameType) -> None:
        fresh = not values and not getattr(scheduler, "last_epoch", 0) and scheduler not in self._waited
        if fresh and not self.steps_of(optimizer_of(scheduler)) and self.at(frame) is not None:
            self._waited.add(scheduler)
            self.applied += 1
        else:
            step()
