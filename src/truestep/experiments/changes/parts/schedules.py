"""Base class of changes to the steps of schedules in findings."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.aimed import Aimed
from truestep.seams.patch import patch


class Scheduled(Aimed):
    """A change to steps of schedules. It skips schedules inside others, which step them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._inside = 0
        self._steps: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def aim(self, stack: ExitStack) -> None:
        from torch.optim import lr_scheduler as module

        kinds = [kind for kind in vars(module).values() if isinstance(kind, type)]
        for kind in dict.fromkeys(kind for kind in kinds if issubclass(kind, module.LRScheduler)):
            if "__init__" in vars(kind):
                patch(stack, kind, "__init__", self._init(vars(kind)["__init__"]))
            if "step" in vars(kind):
                patch(stack, kind, "step", self._step(vars(kind)["step"]))

        def scaler_steps(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self._steps[optimizer] = self.steps_of(optimizer) + 1  # also where it skips the step
            return step_of_scaler(scaler, optimizer, *args, **kwargs)

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            self._steps[optimizer] = self.steps_of(optimizer) + 1
            self.optimizer_stepped(optimizer)

        step_of_scaler = seams.scaler.wrap(stack, "step", scaler_steps)
        seams.step.watch(stack, after=stepped)

    def steps_of(self, optimizer: Any) -> int:
        """Return a counter that grows with every step of an optimizer, also with a step that a scaler skips."""
        return self._steps.get(optimizer, 0)

    def built(self, scheduler: Any, frame: FrameType) -> None:
        """Called after a schedule was created."""

    def stepped(self, scheduler: Any, step: Callable[[], Any], values: tuple[Any, ...], frame: FrameType) -> None:
        """Take a step of a schedule, or skip it."""
        step()

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Called after a step of an optimizer."""

    def take(self, step: Callable[[], Any]) -> None:
        """Take an additional step of a schedule."""
        self._inside += 1
        try:
            step()
        finally:
            self._inside -= 1

    def _init(self, original: Any) -> Any:
        @functools.wraps(original)
        def __init__(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            self._inside += 1
            try:
                original(scheduler, *args, **kwargs)
            finally:
                self._inside -= 1
            if not self._inside:
                self.built(scheduler, sys._getframe(1))

        return __init__

    def _step(self, original: Any) -> Any:
        @functools.wraps(original)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return original(scheduler, *args, **kwargs)
            self._inside += 1
            try:
                taken = functools.partial(original, scheduler, *args, **kwargs)
                return self.stepped(scheduler, taken, (*args, *kwargs.values()), sys._getframe(1))
            finally:
                self._inside -= 1

        return step


def optimizer_of(scheduler: Any) -> Any:
    """Return the optimizer of a schedule, without Accelerate's wrapper."""
    optimizer = getattr(scheduler, "optimizer", None)
    return getattr(optimizer, "optimizer", optimizer)
