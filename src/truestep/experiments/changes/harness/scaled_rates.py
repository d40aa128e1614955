"""Take steps with another learning rate: is the script's learning rate the reason that it does not learn?"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change


class ScaledRates(Change):
    """Each step of an optimizer uses its learning rates times a factor; between steps the rates are unchanged.

    Args:
        factor: factor for all learning rates.
    """

    name = "scaled-rates"

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self._factor = factor
        self._own: dict[int, list[Any]] = {}

    def install(self, stack: ExitStack) -> None:
        def steps(optimizer: Any, *_: Any) -> None:
            self._own[id(optimizer)] = [group.get("lr") for group in optimizer.param_groups]
            for group in optimizer.param_groups:
                if group.get("lr") is not None:
                    group["lr"] = group["lr"] * self._factor
                    self.applied += 1

        def stepped(optimizer: Any, *_: Any) -> None:
            for group, rate in zip(optimizer.param_groups, self._own.pop(id(optimizer), ()), strict=False):
                if rate is not None:
                    group["lr"] = rate

        seams.step.watch(stack, before=steps, after=stepped)
