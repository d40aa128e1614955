"""Base class of changes around the calls of modules at the line of a finding."""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.aimed import Aimed


class AroundCalls(Aimed):
    """A change around calls of modules. It does not reach calls inside compiled functions."""

    def aim(self, stack: ExitStack) -> None:
        import torch
        from torch.nn.modules import module as modules

        compiling, task = torch.compiler.is_compiling, torch._C._current_graph_task_id
        local = threading.local()

        def enters(module: Any, args: Any) -> None:
            if compiling():
                return
            under = vars(local).setdefault("under", [])
            if under and under[-1][0] is module:  # a module that calls itself
                under.append((module, lambda: None))
            elif not self.wants(module) or task() != -1:  # -1: not recomputed in a backward pass
                return
            elif self.at_call(sys._getframe(1)) is not None:
                undo = self.enter(module)
                if undo is not None:
                    under.append((module, undo))

        def leaves(module: Any, args: Any, result: Any) -> None:
            if compiling():
                return
            under = vars(local).get("under")
            if under and under[-1][0] is module:
                under.pop()[1]()

        stack.callback(modules.register_module_forward_pre_hook(enters).remove)
        stack.callback(modules.register_module_forward_hook(leaves, always_call=True).remove)
        hook_in_silence(stack)

    def wants(self, module: Any) -> bool:
        """Return True if the change applies to a module. Must be fast: it runs at every call of every module."""
        raise NotImplementedError

    def enter(self, module: Any) -> Any:
        """Apply the change before a call at the line.

        Returns:
            A function that undoes it after the call, or None.
        """
        raise NotImplementedError


def hook_in_silence(stack: ExitStack) -> None:
    """Silence torch's warning about hooks on compiled modules: the hooks of changes do nothing there."""
    warnings.filterwarnings("ignore", message="Using `torch.compile")
    ours = warnings.filters[0]

    def undo() -> None:
        if ours in warnings.filters:
            warnings.filters.remove(ours)  # type: ignore[attr-defined]

    stack.callback(undo)
