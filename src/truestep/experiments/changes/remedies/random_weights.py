"""The remedy for units that start equal and stay equal: random weights, as in torch's own layers."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import parameters_of
from truestep.seams.refs import tensor_keys


class RandomWeights(Change):
    """A weight with equal rows, and with equal rows in its gradient, gets random rows before its first step.

    Equal rows with different gradients diverge without help (a last layer of zeros, LoRA), so they are left alone. The
    numbers are drawn by a separate generator, uniformly within sqrt(6 / inputs) of zero.
    """

    name = "random-weights"
    remedies = ("symmetric-initialisation",)

    def install(self, stack: ExitStack) -> None:
        import torch

        looked: Any = tensor_keys()

        def steps(optimizer: Any, args: Any, kwargs: Any) -> None:
            for parameter in parameters_of(optimizer):
                if parameter in looked or parameter.grad is None:
                    continue
                looked[parameter] = True
                if _is_symmetric(parameter):
                    generator = torch.Generator().manual_seed(torch.initial_seed() + self.applied)
                    bound = math.sqrt(6 / parameter[0].numel())
                    drawn = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
                    with torch.no_grad():
                        parameter.copy_(drawn)
                    self.applied += 1

        seams.step.watch(stack, before=steps)


def _is_symmetric(parameter: Any) -> bool:
    """Return True if all rows are equal, and would be equal after a step."""
    if parameter.dim() < 2 or parameter.shape[0] < 2 or parameter.grad.is_sparse:
        return False
    values, gradient = parameter.detach(), parameter.grad
    if not (values == values[:1]).all() or not gradient.any():
        return False
    scale = float(gradient.abs().max())
    return bool(((gradient - gradient[:1]).abs() <= 1e-5 * scale).all())
