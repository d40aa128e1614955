"""The remedy for plateau schedules that get losses of batches: they get the mean of an epoch, once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from statistics import fmean
from types import FrameType
from typing import Any

from truestep.experiments.changes.parts.passes import Passes
from truestep.experiments.changes.parts.schedules import Scheduled


class PlateauByEpoch(Scheduled):
    """The values that the line of the finding gives a plateau schedule within a pass are given once, as their mean.

    A schedule that waits for its metric to rise is left alone, and so is one stepped once per epoch: the losses of the
    other batches are not known there.
    """

    name = "plateau-by-epoch"
    remedies = ("plateau-without-metric",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._given: dict[int, dict[int, tuple[Any, list[float]]]] = {}
        """Schedules with their values, by pass."""
        self._passes = Passes(self._over)

    def aim(self, stack: ExitStack) -> None:
        super().aim(stack)
        self._passes.install(stack)

    def stepped(self, scheduler: Any, step: Callable[[], Any], values: tuple[Any, ...], frame: FrameType) -> None:
        under_way, mode = self._passes.now, getattr(scheduler, "mode", "")
        if mode != "min" or not values or under_way is None or self.at(frame) is None:
            step()
            return
        _, given = self._given.setdefault(under_way, {}).setdefault(id(scheduler), (scheduler, []))
        given.append(float(values[0]))
        self.applied += 1

    def _over(self, number: int) -> None:
        for scheduler, given in self._given.pop(number, {}).values():
            self.take(partial(scheduler.step, fmean(given)))
