"""The step of a run, whole and line by line.

`Stepping.step` reads top to bottom; each of its lines can be called alone, in a loop that owns them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch

from truestep.errors import BadLoss, BadSettings
from truestep.loop.optim.precision import Precision
from truestep.loop.optim.reached import note_unused
from truestep.loop.optim.updates import Updates, clipped
from truestep.loop.process.strategy import Strategy
from truestep.loop.run.logging import Recording
from truestep.loop.run.loops import Loops
from truestep.loop.run.registry import Parts
from truestep.model.boundary import Told

Closure = Callable[[], torch.Tensor]
Optimizers = torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None


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
        optimizer: Optimizers = None,
    ) -> bool:
        """Take one micro-step, and at the window's end one step.

        Args:
            loss: a tensor of one element: a mean, or with `weight` a sum. Or, for optimizers that evaluate the loss
                several times (LBFGS, SAM), a function that computes and returns the mean, without a backward pass.
            weight: what a summed loss holds (tokens, samples): the step's gradient is then that of the sum of all
                losses in the window divided by the sum of their weights.
            optimizer: which one to update, or a list of those that this loss updates together (Muon for matrices,
                AdamW for the rest); may be left out where there is one.

        Returns:
            Whether the window closed. What it holds at the end of a loop over a loader closes at the last micro-step of
            the last body; after that body, with False returned here, where bodies differ in their number of micro-steps
            or none came before.
        """
        group = self._parts.group(optimizer)
        if not isinstance(loss, torch.Tensor) and callable(loss):
            self._step_closure(group, loss)
            return True
        _check_loss(loss)
        self._watch_loss(loss, group)
        self._backward(loss, weight, group)
        window = group[0].window
        if not window.is_full:
            if not self._loops.ends(group[0]):
                return False
            window.closed_early = True
        self._close(group)
        return True

    def _close(self, group: tuple[Updates, ...]) -> None:
        """End a window."""
        self._clip(group)  # unscales before it clips
        last = group[-1]
        for updates in group:
            updates.apply(last=updates is last)  # through the scaler, which may skip it
        for updates in group:
            updates.schedule()  # moves only if it was applied
            updates.optimizer.zero_grad()
            updates.reset()

    def _clip(self, group: tuple[Updates, ...]) -> None:
        """Clip to the run's limit the gradients of all optimizers that a loss updates, as of one model."""
        if len(group) > 1:
            for updates in group:
                if updates.clips_alone:
                    self._clip(updates.alone)
            group = tuple([updates for updates in group if not updates.clips_alone])
        max_norm = group[0].clip_norm if group else None
        if max_norm is not None:
            self._clip_to(max_norm, group)

    def _clip_to(self, max_norm: float, group: tuple[Updates, ...]) -> torch.Tensor:
        if len(group) == 1:
            norm = group[0].clip_grad_norm_(max_norm)
        else:
            for updates in group:
                updates.unscale_()
            norm = clipped(self._parts.joint_parameters(group), max_norm)
            for updates in group:
                updates.grad_norm = norm
        self.grad_norm = norm
        self._watch_norm(group, norm)
        return norm

    def _step_closure(self, group: tuple[Updates, ...], closure: Closure) -> None:
        """Take a step of an optimizer that evaluates the loss several times."""
        updates = group[0]
        if len(group) > 1 or updates.scaler is not None or updates.window.accumulate > 1 or updates.window.is_open:
            raise BadSettings(
                "a function was given to run.step() in a run with fp16, accumulation, or for several optimizers",
                expected='precision "fp32" or "bf16", and accumulate=1: its optimizer evaluates whole steps',
                remedy="pass run.optimizer(optimizer, accumulate=1), and another precision than fp16",
            )

        def evaluate() -> torch.Tensor:
            updates.discard()
            loss = closure()
            _check_loss(loss)
            self._backward(loss, None, group)
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
        optimizer: Optimizers = None,
    ) -> None:
        """Divide the loss by what its window holds, scale it, and run its backward pass: one micro-step.

        Where the run has several optimizers, the window of this one opens on cleared gradients, and with accumulation
        the backward pass reaches the parameters of this one only, or of those in the list.
        """
        group = self._parts.group(optimizer)
        _check_loss(loss)
        self._watch_loss(loss, group)
        self._backward(loss, weight, group)

    def _backward(
        self, loss: torch.Tensor, weight: int | float | torch.Tensor | None, group: tuple[Updates, ...]
    ) -> None:
        first, own = group[0], None
        window = first.window
        several = len(self._parts.updates) > 1
        if several:
            own = self._prepare(loss, group)
        elif not window.is_open and first.has_new_groups():
            first.optimizer.zero_grad()  # gradients of steps before a parameter was added
        divisor = window.divisor(weight)
        if isinstance(divisor, torch.Tensor) or divisor != 1:  # to compare a tensor would be to wait for the device
            loss = loss / divisor
        if first.scaler is not None:
            loss = first.scaler.scale(loss)
        with self.strategy.accumulating(closing=window.is_full or self._loops.ends(first)):
            try:
                torch.autograd.backward(loss, inputs=own)
            except RuntimeError as error:
                if several and "backward through the graph a second time" in str(error):
                    error.add_note(
                        "truestep: a loss of several optimizers is stepped once: run.step(loss, optimizer=[...])"
                    )
                raise
        if several:
            for updates in group[1:]:
                updates.window.follow(window)

    def _prepare(self, loss: torch.Tensor, group: tuple[Updates, ...]) -> list[torch.Tensor] | None:
        """Join the optimizers that a loss updates; return the parameters that it may reach, None for all of them."""
        every = self._parts.updates.values()
        for updates in group:
            updates.join(group)
        if not group[0].window.is_open:
            for updates in group:
                updates.optimizer.zero_grad()  # what other losses left there
        if len(group) == len(every):
            return None
        note_unused(loss, group, every)
        # a gradient that this loss leaves in another optimizer's parameters is cleared when that one's window opens
        if group[0].window.accumulate == 1 and not any(u.window.is_open for u in every if u not in group):
            return None
        return [p for updates in group for p in updates.parameters() if p.requires_grad]

    def unscale_(self, optimizer: Optimizers = None) -> None:
        """Make the gradients those of the window's mean, out of the scale of fp16; once per window."""
        for updates in self._parts.group(optimizer):
            updates.unscale_()

    def clip_grad_norm_(self, max_norm: float, optimizer: Optimizers = None) -> torch.Tensor:
        """Scale gradients down to `max_norm`; return their norm before, without dimension.

        Args:
            max_norm: of the gradients of all its parameters together, and of all optimizers in a list.
            optimizer: which one, or a list of those that one loss updates; may be left out where there is one.
        """
        return self._clip_to(max_norm, self._parts.group(optimizer))

    def optimizer_step(self, optimizer: Optimizers = None) -> bool:
        """Apply the update and move its schedule; return False where the scaler skipped it. Closes the window."""
        group = self._parts.group(optimizer)
        waiting = [updates for updates in group[0].group if updates.window.is_open and updates not in group]
        last = None if waiting else group[-1]  # the scale is updated once, when all that share it have stepped
        applied = [updates.apply(last=updates is last) for updates in group]
        for updates in group:
            updates.schedule()
            updates.reset()
        return all(applied)

    def zero_grad(self, optimizer: Optimizers = None) -> None:
        """Clear the gradients of one optimizer or several; an open window is dropped."""
        for updates in self._parts.group(optimizer):
            updates.discard()

    def flush(self) -> None:
        """Update with what the open windows hold: after a loop that was left in the middle of a window."""
        for group in self._parts.open_groups:
            self._close(group)

    def discard(self) -> None:
        """Drop what the open windows hold."""
        for updates in self._parts.open_windows:
            updates.discard()

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of the forward pass and the loss, for the run's precision.

        An error of torch that leaves it has a note that says which tensors did not fit, where that is certain.
        """
        return Told(self.precision.autocast())


def _check_loss(loss: object) -> None:
    """Refuse what has no backward pass of one step: torch would name neither the loss nor what to do."""
    if isinstance(loss, torch.Tensor):
        if loss.numel() == 1:
            return
        raise BadLoss(
            f"a step was given a loss of {loss.numel()} elements",
            expected=f"a tensor of one element, got one of shape {tuple(loss.shape)}",
            remedy="reduce it: run.step(loss.mean())",
        )
    what = f"a {type(loss).__name__}" if loss is not None else "None"
    remedy = "pass the loss that the model computed, without .item() or float()"
    if isinstance(loss, dict | tuple | list):
        remedy = "pass the part that is to be minimized, or the sum of its parts"
    raise BadLoss(f"a step was given {what} as its loss", expected="a tensor of one element", remedy=remedy)
