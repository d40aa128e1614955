"""Observe the outermost calls of modules, outside of backward passes and compilers: the calls by the script itself."""

from __future__ import annotations

import threading
import weakref
from contextlib import ExitStack
from typing import Any

from truestep import seams


class _Depth(threading.local):
    inside = 0


class RootCalls:
    """Base of observers of outermost calls of modules; calls inside of these are skipped.

    Subclasses override `entered`, which returns a token, and `left`, which receives it, also after an exception.
    """

    def __init__(self) -> None:
        self._depth = _Depth()
        self._trainable: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()

    def listen(self, stack: ExitStack) -> bool:
        """Observe calls until the stack unwinds; return False if torch's source differs from the expected one."""
        import torch

        self._engine_task = torch._C._current_graph_task_id
        return seams.module_call.wrap(stack, enter=self._enter, leave=self._leave, depth=self._depth)

    def entered(self, module: Any) -> Any:
        """Called before an outermost call."""

    def left(self, token: Any) -> None:
        """Called after it."""

    def is_model(self, module: Any) -> bool:
        """Return True if a module has parameters, unlike a loss or a transform."""
        known = self._trainable.get(module)
        if known is None:
            known = self._trainable[module] = next(module.parameters(), None) is not None
        return known

    def _enter(self, module: Any, args: tuple[Any, ...], depth_of_caller: int = 2) -> Any:
        if self._depth.inside or self._engine_task() != -1:
            return None
        token = self.entered(module)
        self._depth.inside = 1
        return (token,)

    def _leave(self, token: Any, result: Any, depth_of_caller: int = 2) -> None:
        if token is not None:
            self._depth.inside = 0
            self.left(token[0])
