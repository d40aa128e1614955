"""The remedy for targets with another shape than the predictions: reshape them, so that they do not broadcast."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch

_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


class AlignTarget(Change):
    """Losses that would broadcast compare each prediction with its own target, if their numbers are equal."""

    name = "align-target"
    remedies = ("broadcast-target",)
    alters_loss = True

    def install(self, stack: ExitStack) -> None:
        from torch.nn import functional

        for name in _LOSSES:
            patch(stack, functional, name, self._aligned(getattr(functional, name)))

    def _aligned(self, loss_of: Any) -> Any:
        def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if input.shape != target.shape and input.numel() == target.numel():
                target = target.reshape(input.shape)
                self.applied += 1
            return loss_of(input, target, *args, **kwargs)

        return loss
