"""The remedy for schedules that are stepped too often or too rarely: step them as the finding recommends."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep.experiments.changes.parts.passes import Passes
from truestep.experiments.changes.parts.schedules import Scheduled, optimizer_of


class PaceSchedule(Scheduled):
    """Follows the help of the finding.

    "once per epoch": a schedule that the line of the finding steps within a pass over a torch loader is stepped once,
    at the end of the pass. "after every ... step": the schedule of the finding is stepped after each step of its
    optimizer, and nowhere else. Other helps ask for another schedule: nothing is changed.
    """

    name = "pace-schedule"
    remedies = ("learning-rate-dead", "scheduler-wrong-cadence")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: dict[int, dict[int, Callable[[], Any]]] = {}
        """Schedules to step at the end of a pass, by pass."""
        self._by_update: weakref.WeakSet[Any] = weakref.WeakSet()
        self._passes = Passes(self._over)

    def aim(self, stack: ExitStack) -> None:
        super().aim(stack)
        self._passes.install(stack)

    def built(self, scheduler: Any, frame: FrameType) -> None:
        aim = self.at(frame, beside=True)
        if aim is None or "step()` after every" not in aim.help:
            return
        self._by_update.add(scheduler)
        for inner in getattr(scheduler, "_schedulers", ()):
            self._by_update.discard(inner)

    def stepped(self, scheduler: Any, step: Callable[[], Any], values: tuple[Any, ...], frame: FrameType) -> None:
        if scheduler in self._by_update:
            return
        under_way, aim = self._passes.now, self.at(frame)
        if under_way is not None and aim is not None and "step()` once per epoch" in aim.help:
            self._waiting.setdefault(under_way, {})[id(scheduler)] = step
            self.applied += 1
        else:
            step()

    def optimizer_stepped(self, optimizer: Any) -> None:
        for scheduler in list(self._by_update):
            if optimizer_of(scheduler) is optimizer:
                self.take(scheduler.step)
                self.applied += 1

    def _over(self, number: int) -> None:
        for step in self._waiting.pop(number, {}).values():
            self.take(step)
