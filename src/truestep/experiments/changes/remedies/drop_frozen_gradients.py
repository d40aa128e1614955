"""The remedy for frozen parameters that steps still change: drop the gradient that an earlier step has used."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.seams.refs import Ref, tensor_keys


class DropFrozenGradients(Change):
    """Before a step, a frozen parameter loses a gradient that an earlier step used already, or one of zeros.

    Optimizers skip parameters without a gradient. Optimizers that still decay these are not affected.
    """

    name = "drop-frozen-gradients"
    remedies = ("frozen-parameter-moves",)
    silences = True

    def __init__(self) -> None:
        super().__init__()
        self._used: Any = tensor_keys()
        """Gradient that a step has used, with its version, by parameter."""

    def install(self, stack: ExitStack) -> None:
        def steps(optimizer: Any, args: Any, kwargs: Any) -> None:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None and not parameter.requires_grad and self._is_old(parameter):
                        parameter.grad = None
                        self.applied += 1

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is not None and not gradient.is_inference():
                        self._used[parameter] = Ref(gradient), gradient._version

        seams.step.watch(stack, before=steps, after=stepped)

    def _is_old(self, parameter: Any) -> bool:
        gradient = parameter.grad
        if gradient.is_inference():
            return False
        ref, version = self._used.get(parameter, (None, 0))
        used = ref is not None and ref() is gradient and gradient._version == version
        return used or not gradient.count_nonzero()
