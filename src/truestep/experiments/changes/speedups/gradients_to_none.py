"""Gradients set to None instead of filled with zeros."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.speedup import Speedup, Stage
from truestep.seams.patch import patch


class GradientsToNone(Speedup):
    """`zero_grad(set_to_none=False)` of optimizers and modules drops gradients, as is torch's default."""

    name = "set-to-none"
    summary = "zero_grad() drops gradients, where the script says set_to_none=False"
    lines = "optimizer.zero_grad(set_to_none=True)   # torch's default"
    phases = ("optimizer",)
    stage = Stage.SWITCHES
    combines = True

    def install(self, stack: ExitStack) -> None:
        import torch

        for kind in (torch.optim.Optimizer, torch.nn.Module):
            patch(stack, kind, "zero_grad", self._dropping(kind.zero_grad))

    def _dropping(self, zero: Any) -> Any:
        @functools.wraps(zero)
        def zero_grad(owner: Any, set_to_none: bool = True) -> None:
            self.applied += not set_to_none
            zero(owner, True)

        return zero_grad
