"""Conditions for a check: no other observer of torch is active, and no other thread or process is involved."""

from __future__ import annotations

import sys
import threading
from typing import Any

from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused

_ATTEMPTS = 3
_MOST = 8
"""Models or loaders with attempts, for each kind of check."""


def hindrance(scene: Scene) -> str:
    """Return the reason why the program's code cannot be called again now; empty if it can."""
    torch = scene.torch
    if threading.current_thread() is not threading.main_thread():
        return "it is evaluated in another thread"
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return "the program is being traced"
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "several processes take part"
    if torch.autograd._profiler_enabled() or torch._C._get_tracing_state() is not None:
        return "the program is being profiled"
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return "a graph is being captured"
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "a function is being transformed"
    if torch.nn.modules.module._has_any_global_hook():
        return "hooks are set on all modules"
    if torch.utils._python_dispatch._get_current_dispatch_mode_stack() or _function_modes(torch):
        return "the operations of torch are being watched"
    return ""


def _function_modes(torch: Any) -> bool:
    modes = torch.overrides._get_current_function_mode_stack()
    return any(type(mode).__module__ != "torch.utils._device" for mode in modes)


def fit(module: Any) -> None:
    """Raise an error unless the whole model is in eval mode.

    Raises:
        Refused: a submodule is in train mode.
    """
    if any(part.training for part in module.modules()):
        raise Refused("a part of it is in train mode")


class Attempts:
    """Numbers of attempts of checks that can be refused: some for each model or loader, and for some of these."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, int], int] = {}
        """Kind of check and its model or loader, to the number of attempts left."""

    def due(self, what: str, number: int) -> bool:
        """Return True if a check may be tried."""
        left = self._left.get((what, number))
        if left is not None:
            return left > 0
        return [kind for kind, _ in self._left].count(what) < _MOST

    def begin(self, what: str, number: int) -> None:
        """Count an attempt."""
        self._left[what, number] = self._left.get((what, number), _ATTEMPTS) - 1

    def settle(self, what: str, number: int) -> None:
        """End the attempts of a check that has a result."""
        self._left[what, number] = 0

    def open(self, what: str, number: int) -> bool:
        """Return True at the first call for a check, which counts as no attempt."""
        if (what, number) in self._left:
            return False
        self._left[what, number] = _ATTEMPTS
        return True
