"""Base class of speed-ups that change each model once, at its first call."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.speedup import Speedup, Stage
from truestep.experiments.running.inside.outermost_calls import RootCalls


class ModelChange(Speedup):
    """Changes each outermost module at its first call."""

    stage = Stage.MODEL

    def install(self, stack: ExitStack) -> None:
        _FirstCalls(self, stack).listen(stack)

    @abstractmethod
    def change(self, module: Any, stack: ExitStack) -> int:
        """Change a module until the stack unwinds; return the number of changes."""


class _FirstCalls(RootCalls):
    def __init__(self, change: ModelChange, stack: ExitStack) -> None:
        super().__init__()
        self._change = change
        self._stack = stack
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def entered(self, module: Any) -> Any:
        if module not in self._seen:
            self._seen.add(module)
            self._change.applied += self._change.change(module, self._stack)
