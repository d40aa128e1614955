"""The remedy for `forward` called directly: the module is called, with its hooks."""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.aimed import Aimed
from truestep.seams.patch import patch

_REGISTER = (
    "register_forward_pre_hook",
    "register_forward_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)


class CallModule(Aimed):
    """`module.forward(...)` at the line found is `module(...)`, for classes of modules that were given hooks."""

    name = "call-module"
    remedies = ("forward-called-directly",)
    silences = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reached: set[type] = set()

    def aim(self, stack: ExitStack) -> None:
        import torch

        for name in _REGISTER:
            patch(stack, torch.nn.Module, name, self._registering(stack, getattr(torch.nn.Module, name)))

    def _registering(self, stack: ExitStack, register: Any) -> Any:
        @functools.wraps(register)
        def registering(module: Any, *args: Any, **kwargs: Any) -> Any:
            self._reach(stack, type(module))
            return register(module, *args, **kwargs)

        return registering

    def _reach(self, stack: ExitStack, kind: Any) -> None:
        """Observe direct calls of the `forward` of a class."""
        import torch

        original: Any = getattr(kind, "forward", None)
        if kind in self._reached or original is None:
            return
        self._reached.add(kind)
        compiling = torch.compiler.is_compiling

        def through(module: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling() or type(module) is not kind or not self._directly(sys._getframe(1)):
                return original(module, *args, **kwargs)
            self.applied += 1
            return module(*args, **kwargs)

        patch(stack, kind, "forward", functools.wraps(original)(through))

    def _directly(self, frame: Any) -> bool:
        return (self._place(frame), frame.f_lineno) in self._first
