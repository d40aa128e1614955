"""Calls of modules in a script: its models, and the places of the calls of their layers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep import seams
from truestep.probes.backward.cuts import Chain
from truestep.probes.context.sites import Sites


class _Depth(threading.local):
    inside = 0
    """Never 1: inner calls are observed as well."""
    calls = 0


class ModuleCalls:
    """Observes all calls of modules, outside of backward passes and compilers.

    Attributes:
        forwarded: distinct places of the calls by id of the trainable parameters that took part with a gradient.
        without_grad: the same for calls without gradients.
        order: number of each place, in the order of first calls.
        on: False lets all calls pass by.

    Args:
        sites: knows the lines of the script.
        met: called before each outermost call with the module and the frame of the call.
        made: called after it with the module, the result and the frame.
        failed: called with the exception of one of them.
    """

    def __init__(
        self,
        sites: Sites,
        met: Callable[[Any, FrameType], None],
        made: Callable[[Any, Any, FrameType], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.forwarded: dict[int, dict[Chain, None]] = {}
        self.without_grad: dict[int, dict[Chain, None]] = {}
        self.order: dict[Chain, int] = {}
        self.on = True
        self._sites, self._met, self._made, self._failed = sites, met, made, failed
        self._depth = _Depth()

    def install(self, stack: ExitStack) -> bool:
        """Observe until the stack unwinds; return False if torch's source differs from the expected one."""
        import torch

        self._gradients = torch.is_grad_enabled
        self._engine_task = torch._C._current_graph_task_id
        return seams.module_call.wrap(stack, enter=self._enter, leave=self._leave, depth=self._depth)

    def clear(self) -> None:
        """Forget the calls so far."""
        self.forwarded.clear()
        self.without_grad.clear()
        self.order.clear()

    def _enter(self, module: Any, args: tuple[Any, ...], depth_of_caller: int = 2) -> Any:
        self._depth.calls += 1
        if not self.on or self._engine_task() != -1:
            return None
        outermost = self._depth.calls == 1
        frame = sys._getframe(depth_of_caller)
        try:
            if outermost:
                self._met(module, frame)
            own = [parameter for parameter in module._parameters.values() if parameter is not None]
            if any(parameter.requires_grad for parameter in own):
                taken = self.forwarded if self._gradients() else self.without_grad
                place = self._sites.chain()
                self.order.setdefault(place, len(self.order))
                for parameter in own:
                    if parameter.requires_grad:
                        taken.setdefault(id(parameter), {})[place] = None
        except Exception as error:
            self._failed(error)
        return (module, frame) if outermost else None

    def _leave(self, token: Any, result: Any, depth_of_caller: int = 2) -> None:
        self._depth.calls -= 1
        if token is not None and result is not None:
            try:
                module, frame = token
                self._made(module, result, frame)
            except Exception as error:
                self._failed(error)


ALONE = (ModuleCalls._enter.__code__, ModuleCalls._leave.__code__)
"""Code that runs inside calls of modules; TorchDynamo must not compile it."""
