"""The remedy for steps that 16 bits round away: the optimizer works on 32-bit copies of the parameters."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import parameters_of
from truestep.seams.refs import tensor_keys

_MOST = 0.1
"""Largest fraction of elements with a gradient that change in a step that counts as rounded away."""


class FullPrecision(Change):
    """A torch optimizer continues on 32-bit values if its first step changed at most a tenth of the elements it should.

    Each further step acts on these values, with gradients and moments in 32 bits; the model gets them rounded to its 16
    bits. Values that the script writes to a parameter are adopted. An optimizer with an effective first step is left
    alone; a step with a learning rate of 0 is not judged.
    """

    name = "full-precision"
    remedies = ("update-rounds-to-zero",)

    def install(self, stack: ExitStack) -> None:
        self._exact: Any = tensor_keys()
        """32-bit values by 16-bit parameter."""
        self._rounds: MutableMapping[Any, bool] = weakref.WeakKeyDictionary()
        """True by optimizer if its steps are rounded away, False if not."""
        self._before: list[tuple[Any, Any]] = []
        self._swapped: list[tuple[Any, Any, Any]] = []
        seams.step.watch(stack, before=self._begin, after=self._end)

    def _begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Replace 16-bit values, gradients and moments by 32-bit ones; or record them before the first step."""
        import torch

        small = [p for p in parameters_of(optimizer) if p.dtype in (torch.bfloat16, torch.float16)]
        small = [p for p in small if p.grad is not None and not p.grad.is_sparse]
        if not small or not type(optimizer).__module__.startswith("torch.optim") or args[1:] or kwargs:
            return
        if optimizer not in self._rounds:
            self._before = [(p, p.detach().clone()) for p in small]
        elif self._rounds[optimizer]:
            self.applied += 1
            for parameter in small:
                short, gradient = parameter.data, parameter.grad
                exact = self._exact.get(parameter)
                if exact is None or not torch.equal(exact.to(short.dtype), short):
                    exact = self._exact[parameter] = short.float()
                self._swapped.append((parameter, short, gradient))
                parameter.grad = None
                parameter.data = exact
                parameter.grad = gradient.float()
                state = optimizer.state.get(parameter, {})
                state.update({key: value.float() for key, value in state.items() if _is_small(value)})

    def _end(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Write the rounded values to the model; or judge the first step by its changes."""
        before, self._before = self._before, []
        if before and any(float(group["lr"]) for group in optimizer.param_groups):
            moved = sum(int(((p.detach() != value) & (p.grad != 0)).sum()) for p, value in before if p.grad is not None)
            meant = sum(int((p.grad != 0).sum()) for p, _ in before if p.grad is not None)
            if meant:
                self._rounds[optimizer] = moved <= _MOST * meant
        swapped, self._swapped = self._swapped, []
        for parameter, short, gradient in swapped:
            short.copy_(parameter.data)
            parameter.grad = None
            parameter.data = short
            parameter.grad = gradient


def _is_small(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
