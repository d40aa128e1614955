"""The remedy for steps that 16 bits round away: the optimizer works on values in 32 bits beside the parameters."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import parameters_of
from truestep.seams.refs import tensor_keys

_MOST = 0.1
"""Share of the elements with a gradient that steps which are rounded away change at most."""


class FullPrecision(Change):
    """An optimizer of torch whose first step changed at most a tenth of what it should goes on with values in 32 bits.

    Each further step acts on these, with gradients and moments in 32 bits; the model has them rounded to its 16 bits.
    What the script itself writes to a parameter is taken over. An optimizer whose first step comes through is left
    alone; a step with a learning rate of 0 is not judged.
    """

    name = "full-precision"
    remedies = ("update-rounds-to-zero",)

    def install(self, stack: ExitStack) -> None:
        from torch.optim import optimizer as module

        self._exact: Any = tensor_keys()
        """Parameters of 16 bits to their values in 32."""
        self._rounds: MutableMapping[Any, bool] = weakref.WeakKeyDictionary()
        """Optimizers that were judged, and whether their steps are rounded away."""
        self._before: list[tuple[Any, Any]] = []
        self._swapped: list[tuple[Any, Any, Any]] = []
        stack.callback(module.register_optimizer_step_pre_hook(self._begin).remove)
        stack.callback(module.register_optimizer_step_post_hook(self._end).remove)

    def _begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Put values, gradients and moments of 32 bits in the place of those of 16; or look at them before a step."""
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
        """Give the model its 16 bits back; or judge a step by what it changed."""
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
