"""Activations computed again in the backward pass instead of kept: less memory for more time."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.speedups.speedup import Tuning
from truestep.experiments.running.outermost_calls import RootCalls


class ActivationCheckpointing(Tuning):
    """The type of block of which a model has most in a list is recomputed (see `truestep.recompute`)."""

    name = "activation-checkpointing"
    summary = "repeated blocks computed again in the backward pass: less memory for more time"
    lines = "truestep.recompute(model, Block)   # the class of the repeated blocks"
    tolerance = 1e-5
    on_request = True
    saves = "memory"

    def install(self, stack: ExitStack) -> None:
        _Recomputing(self, stack).listen(stack)


class _Recomputing(RootCalls):
    def __init__(self, change: ActivationCheckpointing, stack: ExitStack) -> None:
        super().__init__()
        self._change = change
        self._stack = stack
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def entered(self, module: Any) -> Any:
        from truestep.model.recompute import recompute

        if module in self._seen:
            return
        self._seen.add(module)
        kind = _repeated(module)
        if kind is None:
            return
        before = {id(part) for part in module.modules() if "forward" in vars(part)}
        self._change.applied += len(recompute(module, kind))
        for part in module.modules():
            if "forward" in vars(part) and id(part) not in before:
                self._stack.callback(vars(part).pop, "forward", None)
                self._stack.callback(vars(part).pop, "_recompute_changing", None)


def _repeated(module: Any) -> Any:
    """Return the type of which there are most, at least two, side by side with parameters and parts of their own."""
    from torch import nn

    found: dict[type, int] = {}
    for part in module.modules():
        if isinstance(part, nn.Sequential | nn.ModuleList):
            for child in part:
                if next(child.children(), None) is not None and next(child.parameters(), None) is not None:
                    found[type(child)] = found.get(type(child), 0) + 1
    kinds = [kind for kind, count in found.items() if count > 1 and "forward" not in vars(module)]
    return max(kinds, key=found.__getitem__) if kinds else None
