"""The remedy for gradients that are not cleared for every step: clear them right after it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change


class ClearGradients(Change):
    """The gradients of an optimizer are cleared after each of its steps."""

    name = "clear-gradients"
    remedies = ("missing-zero-grad", "zero-grad-once-per-epoch")

    def install(self, stack: ExitStack) -> None:
        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad = None
                        self.applied += 1

        seams.step.watch(stack, after=stepped)
