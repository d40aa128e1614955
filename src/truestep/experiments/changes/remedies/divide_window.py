"""The remedy for accumulated gradients that are never divided: divide them by the number of backward passes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change


class DivideWindow(Change):
    """Before a step, gradients are divided by the number of backward passes since the last one.

    Clipping by the script before its step acts on undivided gradients.
    """

    name = "divide-window"
    remedies = ("accumulation-not-normalised",)

    def __init__(self) -> None:
        super().__init__()
        self._passes = 0

    def install(self, stack: ExitStack) -> None:
        import torch

        def passes_back(this: seams.backward.Pass) -> None:
            self._passes += 1

        def steps(optimizer: Any, args: Any, kwargs: Any) -> None:
            passes, self._passes = self._passes, 0
            if passes < 2:
                return
            self.applied += 1
            with torch.no_grad():
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        if parameter.grad is not None:
                            parameter.grad /= passes

        seams.backward.watch(stack, before=passes_back)
        seams.step.watch(stack, before=steps)
