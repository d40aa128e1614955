"""The remedy for schedules that are stepped twice: skip the second step."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from truestep.experiments.changes.parts.schedules import Scheduled, optimizer_of


class ScheduleOnce(Scheduled):
    """The line of the finding steps a schedule only if its optimizer has stepped since the schedule last did."""

    name = "schedule-once"
    remedies = ("scheduler-stepped-twice",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._latest: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def stepped(self, scheduler: Any, step: Callable[[], Any], values: tuple[Any, ...], frame: FrameType) -> None:
        steps = self.steps_of(optimizer_of(scheduler))
        if steps and self._latest.get(scheduler) == steps and self.at(frame) is not None:
            self.applied += 1
            return
        self._latest[scheduler] = steps
        step()
