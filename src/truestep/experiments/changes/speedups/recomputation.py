"""Activations recomputed in the backward pass instead of stored: less memory for more time."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.model_changes import ModelChange


class ActivationCheckpointing(ModelChange):
    """The most frequent type of block in the lists of a model is recomputed (see `truestep.recompute`)."""

    name = "activation-checkpointing"
    summary = "repeated blocks computed again in the backward pass: less memory for more time"
    lines = "truestep.recompute(model, Block)   # the class of the repeated blocks"
    priority = 20
    tolerance = 1e-5
    on_request = True
    saves = "memory"

    def change(self, module: Any, stack: ExitStack) -> int:
        from truestep.model.recompute import recompute

        kind = _repeated(module)
        if kind is None:
            return 0
        before = {id(part) for part in module.modules() if "forward" in vars(part)}
        blocks = recompute(module, kind)
        for part in module.modules():
            if "forward" in vars(part) and id(part) not in before:
                stack.callback(vars(part).pop, "forward", None)
                stack.callback(vars(part).pop, "_recompute_changing", None)
        return len(blocks)


def _repeated(module: Any) -> Any:
    """Return the most frequent type, at least two, among modules in a list that have parameters and submodules."""
    from torch import nn

    found: dict[type, int] = {}
    for part in module.modules():
        if isinstance(part, nn.Sequential | nn.ModuleList):
            for child in part:
                if next(child.children(), None) is not None and next(child.parameters(), None) is not None:
                    found[type(child)] = found.get(type(child), 0) + 1
    kinds = [kind for kind, count in found.items() if count > 1 and "forward" not in vars(module)]
    return max(kinds, key=found.__getitem__) if kinds else None
