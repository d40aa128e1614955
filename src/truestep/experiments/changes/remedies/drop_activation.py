"""The remedy for an activation that keeps predictions from reaching the targets: it returns its input."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.sources import Sources, named
from truestep.seams.patch import patch

_REACH = {"relu": (0.0, math.inf), "softplus": (0.0, math.inf), "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0)}
_WRONG = {
    "cross_entropy": ("relu", "sigmoid", "tanh"),
    "binary_cross_entropy_with_logits": ("relu", "softplus", "tanh"),
}
_REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_SHARE = 0.2
_SLACK = 0.05


class DropActivation(Change):
    """A ReLU, softplus, sigmoid or tanh directly before a loss is left out if it clamps the predictions.

    Before `cross_entropy` and `binary_cross_entropy_with_logits` it always clamps; in a regression, if at least a fifth
    of a batch's targets lie outside of its range. Once a loss has shown it, the activation is left out in evaluation
    too. A module that is also used elsewhere in the model is left out before the loss only.
    """

    name = "drop-activation"
    remedies = ("activation-clamps-output",)

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import functional

        self._sources = Sources()

        def same(input: Any, *args: Any, **kwargs: Any) -> Any:
            self.applied += 1
            return input

        for kind in _REACH:
            for owner in (functional, torch, torch.Tensor):
                if hasattr(owner, kind):
                    patch(stack, owner, kind, self._sources.recorded(owner, kind, same))
        for name in (*_WRONG, *_REGRESSION):
            patch(stack, functional, name, named(self._unclamped(name, getattr(functional, name)), functional, name))

    def _unclamped(self, name: str, loss_of: Any) -> Any:
        import torch

        compiling = torch.compiler.is_compiling

        def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            found = None if compiling() else self._sources.source(input)
            if found is not None and _clamps(name, found[0], target, kwargs.get("reduction", "mean")):
                input = found[2]
                self.applied += 1
                self._sources.consumed(found[1])
            return loss_of(input, target, *args, **kwargs)

        return loss


def _clamps(name: str, kind: str, target: Any, reduction: str) -> bool:
    """Return True if an activation of this kind keeps predictions from reaching the targets of a loss."""
    if name in _WRONG:
        return kind in _WRONG[name]
    if reduction == "none" or not target.numel():
        return False
    low, high = _REACH[kind]
    return float(((target < low - _SLACK) | (target > high + _SLACK)).float().mean()) >= _SHARE
