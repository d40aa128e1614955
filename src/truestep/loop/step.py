"""The step of a run, whole and line by line.

`Stepping.step` reads top to bottom; each of its lines can be called alone, in a loop that owns them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from truestep.errors import BadSettings
from truestep.loop.loops import Loops
from truestep.loop.parts import Parts
from truestep.loop.precision import Precision
from truestep.loop.recording import Recording
from truestep.loop.strategy import Strategy
from truestep.loop.updates import Updates
from truestep.model.boundary import Told

Closure = Callable[[], torch.Tensor]


class Stepping(Recording):
    """The lines of a step, for the optimizers of a run.

    Attributes:
        precision: the floating-point format of the forward pass.
        strategy: how a step is spread over processes.
        grad_norm: the norm of the gradients before the last clipping, a tensor of no dimension; None before the first.
    """

    precision: Precision
    strategy: Strategy
    grad_norm: torch.Tensor | None = None
    _parts: Parts
    _loops: Loops

    def step(
        self,
        loss: torch.Tensor | Closure,
        *,
        weight: int | float | torch.Tensor | None = None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> bool:
        """Take one micro-step, and at the window's end one step.

        Args:
            loss: a tensor of one element: a mean, or with `weight` a sum. Or, for optimizers that evaluate the loss
                several times (LBFGS, SAM), a function that computes and returns the mean, without a backward pass.
            weight: what a summed loss holds (tokens, samples): the step's gradient is then that of the sum of all
                losses in the window divided by the sum of their weights.
            optimizer: which one to update; may be left out where there is one.

        Returns:
            Whether the window closed. What a window holds at the end of a loop is updated with after the last body.
        """
        updates = self._parts.of(optimizer)
        if not isinstance(loss, torch.Tensor):
            self._step_closure(updates, loss)
            return True
        self.backward(loss, weight=weight, optimizer=optimizer)
        if not updates.window.is_full:
            return False
        self._close(updates)
        return True

    def _close(self, updates: Updates) -> None:
        """End a window."""
        if updates.clip_norm is not None:
            self.grad_norm = updates.clip_grad_norm_(updates.clip_norm)  # unscales before it clips
            self._watch_norm(updates, self.grad_norm)
        updates.apply()  # through the scaler, which may skip it
        updates.schedule()  # moves only if it was applied
        updates.optimizer.zero_grad()
        updates.reset()

    def _step_closure(self, updates: Updates, closure: Closure) -> None:
        """Take a step of an optimizer that evaluates the loss several times."""
        if updates.scaler is not None or updates.window.accumulate > 1 or updates.window.is_open:
            raise BadSettings(
                "a function was given to run.step() in a run with fp16 or accumulation",
                expected='precision "fp32" or "bf16", and accumulate=1: its optimizer evaluates whole steps',
                remedy="pass run.optimizer(optimizer, accumulate=1), and another precision than fp16",
            )

        def evaluate() -> torch.Tensor:
            updates.discard()
            loss = closure()
            self._backward(loss, optimizer=updates.optimizer)
            if updates.clip_norm is not None:
                self.grad_norm = updates.clip_grad_norm_(updates.clip_norm)
            return loss.detach()

        updates.apply(evaluate)
        updates.schedule()
        updates.optimizer.zero_grad()
        updates.reset()

    def backward(
        self,
        loss: torch.Tensor,
        *,
        weight: int | float | torch.Tensor | None = None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        """Divide the loss by what its window holds, scale it, and run its backward pass: one micro-step.

        Where the run has several optimizers, the window of this one opens on cleared gradients, and with accumulation
        the backward pass reaches the parameters of this one only.
        """
        self._watch_loss(loss, optimizer)
        self._backward(loss, weight, optimizer)

    def _backward(
        self,
        loss: torch.Tensor,
        weight: int | float | torch.Tensor | None = None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        updates = self._parts.of(optimizer)
        several = len(self._parts.updates) > 1
        if not updates.window.is_open and (several or updates.has_new_groups()):
            updates.optimizer.zero_grad()  # what other losses left there, or steps before a parameter was added
        divisor = updates.window.divisor(weight)
        if divisor != 1:
            loss = loss / divisor
        if updates.scaler is not None:
            loss = updates.scaler.scale(loss)
        own = (
            [p for p in updates.parameters() if p.requires_grad] if several and updates.window.accumulate > 1 else None
        )
        with self.strategy.accumulating(closing=updates.window.is_full):
            torch.autograd.backward(loss, inputs=own)

    def unscale_(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Make the gradients those of the window's mean, out of the scale of fp16; once per window."""
        self._parts.of(optimizer).unscale_()

    def clip_grad_norm_(self, max_norm: float, optimizer: torch.optim.Optimizer | None = None) -> torch.Tensor:
        """Scale the gradients of one optimizer down to `max_norm`; return their norm before, without dimension."""
        updates = self._parts.of(optimizer)
        self.grad_norm = updates.clip_grad_norm_(max_norm)
        self._watch_norm(updates, self.grad_norm)
        return self.grad_norm

    def optimizer_step(self, optimizer: torch.optim.Optimizer | None = None) -> bool:
        """Apply the update and move its schedule; return False where the scaler skipped it. Closes the window."""
        updates = self._parts.of(optimizer)
        applied = updates.apply()
        updates.schedule()
        updates.reset()
        return applied

    def zero_grad(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Clear the gradients of one optimizer; an open window is dropped."""
        self._parts.of(optimizer).discard()

    def flush(self) -> None:
        """Update with what the open windows hold: after a loop that was left in the middle of a window."""
        for updates in self._parts.open_windows:
            self._close(updates)

    def discard(self) -> None:
        """Drop what the open windows hold."""
        for updates in self._parts.open_windows:
            updates.discard()

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of the forward pass and the loss, for the run's precision.

        An error of torch that leaves it has a note that says which tensors did not fit, where that is certain.
        """
        return Told(self.precision.autocast())
