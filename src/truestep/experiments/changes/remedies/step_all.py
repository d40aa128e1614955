"""The remedy for an optimizer that is never stepped: step it before its gradients are cleared."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import is_outermost_backward, parameters_of, untraced
from truestep.seams.patch import patch

_LEAST = 10
"""Number of times that unused gradients are cleared, while others step, before an optimizer counts as forgotten: the
rarer steps of one of two optimizers (delayed policies, several steps of a critic) come sooner."""


class StepAll(Change):
    """An optimizer that never stepped while another one did, although its unused gradients are cleared repeatedly,
    steps right before each further clearing: from the tenth on, on all gradients that the backward passes left.

    It does nothing under a `GradScaler`, since the gradients would be scaled, and for LBFGS, which needs a closure.
    """

    name = "step-all"
    remedies = ("backward-without-step",)

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.optim import optimizer as module

        self._passes = 0
        self._scaled = False
        self._stepping = False
        self._stepped: MutableMapping[Any, None] = weakref.WeakKeyDictionary()
        self._cleared: MutableMapping[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
        """Number of clearings of unused gradients, and of the backward passes before, by optimizer."""

        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            self._passes += is_outermost_backward(kwargs)
            return backward(*args, **kwargs)

        def scale(scaler: Any, outputs: Any) -> Any:
            self._scaled |= scaler.is_enabled()
            return scale_of_torch(scaler, outputs)

        def zero_grad(optimizer: Any, set_to_none: bool = True) -> None:
            self._clears(optimizer)
            raw(optimizer, set_to_none)

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not self._stepping:
                self._stepped[optimizer] = None

        backward = patch(stack, torch.autograd, "_engine_run_backward", _engine_run_backward)
        scale_of_torch = patch(stack, torch.amp.GradScaler, "scale", scale)
        zero = vars(torch.optim.Optimizer)["zero_grad"]
        raw = getattr(zero, "__wrapped__", zero)
        patch(stack, torch.optim.Optimizer, "zero_grad", untraced(zero_grad))
        stack.callback(module.register_optimizer_step_post_hook(stepped).remove)

    def _clears(self, optimizer: Any) -> None:
        import torch

        times, before = self._cleared.get(optimizer, (0, 0))
        if (
            isinstance(optimizer, torch.optim.LBFGS)
            or self._scaled
            or optimizer in self._stepped
            or not self._stepped
            or self._passes == before
        ):
            return
        if not any(p.grad is not None and p.grad.any() for p in parameters_of(optimizer)):
            return
        self._cleared[optimizer] = times + 1, self._passes
        if times >= _LEAST:
            self._stepping = True
            try:
                optimizer.step()
            finally:
                self._stepping = False
            self.applied += 1
