"""The step of a run: windows, backward passes, clipping and updates of its optimizers.

Read `Stepper.step` from top to bottom. The rest of a step is in `Updates` (the update of one optimizer), `Window` (the
divisor of the losses) and `RunProgress` (the global step).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch

from truestep.errors import BadLoss, BadSettings, OpenWindow
from truestep.loop.optim.reached import mark_unused
from truestep.loop.optim.updates import Updates, clipped
from truestep.loop.optim.updates_index import UpdatesIndex
from truestep.loop.run.step_alerts import StepAlerts

if TYPE_CHECKING:
    from torch import nn

    from truestep.loop.log.logs import Logs
    from truestep.loop.optim.averaging import Averaging
    from truestep.loop.optim.cadence import Cadence
    from truestep.loop.optim.precision import Precision
    from truestep.loop.optim.updates_index import Optimizers
    from truestep.loop.position.progress import RunProgress
    from truestep.loop.ranks.strategy import Strategy

Closure = Callable[[], torch.Tensor]
Weight = int | float | torch.Tensor | None


class Stepper:
    """Takes the steps of a run; owns the window and the scaler of each optimizer.

    Args:
        updates: of the optimizers of the run, by name; `add` adds to them.
        models: of the run, by name.
        progress: counts the steps.
        averaging: the averages of weights, updated after each optimizer step.
        cadence: compares the number of updates with the plan.
        precision: makes the scalers of fp16.
        strategy: averages gradients over ranks.
        logs: keeps losses and norms for the alerts.

    Attributes:
        cadence: planned and actual number of updates.
        index: finds the updates of an optimizer, and those with an open window.
        grad_norm: norm of the gradients before the last clipping, a tensor of no dimension; None before the first.
    """

    def __init__(
        self,
        updates: dict[str, Updates],
        models: Mapping[str, nn.Module],
        progress: RunProgress,
        averaging: Averaging,
        cadence: Cadence,
        precision: Precision,
        strategy: Strategy,
        logs: Logs,
    ) -> None:
        self._updates = updates
        self.cadence = cadence
        self.grad_norm: torch.Tensor | None = None
        self.index = UpdatesIndex(updates, models)
        self._alerts = StepAlerts(updates, progress, logs)
        self._progress, self._averaging = progress, averaging
        self._precision, self._strategy = precision, strategy

    # --- the optimizers ---

    def add(
        self,
        name: str,
        optimizer: torch.optim.Optimizer,
        accumulate: int,
        clip_norm: float | None,
        *,
        clips_alone: bool,
    ) -> None:
        """Add an optimizer, with a separate window and scaler.

        Args:
            name: its name in the checkpoint.
            optimizer: any `torch.optim.Optimizer`.
            accumulate: micro-steps in a full window.
            clip_norm: maximum norm of the gradients of all its parameters; None for no limit.
            clips_alone: True if `clip_norm` limits its gradients alone when a loss updates several optimizers.
        """
        self._updates[name] = Updates(
            name,
            optimizer,
            accumulate=accumulate,
            clip_norm=clip_norm,
            scaler=self._precision.new_scaler(),
            clips_alone=clips_alone,
            count=self._progress.count,
            applied=self._averaging.applied,
            strategy=self._strategy,
        )

    # --- the step ---

    def step(self, loss: torch.Tensor | Closure, weight: Weight = None, optimizer: Optimizers = None) -> bool:
        """Take one micro-step, and one step at the end of the window; return True if the window was closed.

        Arguments as in `Run.step`.
        """
        group = self.index.group(optimizer)
        if not isinstance(loss, torch.Tensor) and callable(loss):
            self._step_closure(group, loss)
            return True
        _check_loss(loss)
        self._alerts.watch_loss(loss, group)
        self._backward(loss, weight, group)
        window = group[0].window
        if not window.is_full:
            if not self._progress.ends(window):
                return False
            window.closed_early = True
        self._close(group)
        return True

    def backward(self, loss: torch.Tensor, weight: Weight = None, optimizer: Optimizers = None) -> None:
        """Take one micro-step without an update."""
        group = self.index.group(optimizer)
        _check_loss(loss)
        self._alerts.watch_loss(loss, group)
        self._backward(loss, weight, group)

    def _close(self, group: tuple[Updates, ...]) -> None:
        """Update with the gradients of a window, and close it."""
        self._clip(group)  # unscales before it clips
        last = group[-1]
        for updates in group:
            updates.apply(last=updates is last)  # through the scaler, which may skip it
        for updates in group:
            updates.schedule()  # only after an update that was not skipped
            updates.optimizer.zero_grad()
            updates.reset()

    def _clip(self, group: tuple[Updates, ...]) -> None:
        """Clip the gradients of all optimizers of a loss together, except those of optimizers with a separate limit."""
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
            norm = clipped(self.index.joint_parameters(group), max_norm)
            for updates in group:
                updates.grad_norm = norm
        self.grad_norm = norm
        self._alerts.watch_norm(group, norm)
        return norm

    def _step_closure(self, group: tuple[Updates, ...], closure: Closure) -> None:
        """Take a step of an optimizer that evaluates the loss several times (LBFGS, SAM)."""
        updates = group[0]
        if len(group) > 1 or updates.scaler is not None or updates.window.accumulate > 1 or updates.window.is_open:
            raise BadSettings(
                "a function was given to run.step() in a run with fp16, accumulation, or for several optimizers",
                expected='expected precision "fp32" or "bf16", and accumulate=1: its optimizer evaluates whole steps',
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

    def _backward(
        self, loss: torch.Tensor, weight: int | float | torch.Tensor | None, group: tuple[Updates, ...]
    ) -> None:
        # The order matters: the window opens on cleared gradients, the divisor counts this micro-step, and `ends` needs
        # the count.
        first, own = group[0], None
        window = first.window
        several = len(self._updates) > 1
        if several:
            own = self._prepare(loss, group)
        elif not window.is_open and first.has_new_groups():
            first.optimizer.zero_grad()  # clears gradients of steps before a parameter was added
        share = self._strategy.weight
        if share != 1:
            loss, weight = _shared(loss, weight, share)
        divisor = window.divisor(weight)
        if isinstance(divisor, torch.Tensor) or divisor != 1:  # comparing a tensor would wait for the device
            loss = loss / divisor
        if first.scaler is not None:
            loss = first.scaler.scale(loss)
        strategy = self._strategy
        strategy.before_backward(group, loss, last=window.is_full or self._progress.ends(window))
        try:
            torch.autograd.backward(loss, inputs=None if own is None else strategy.leaves(own))
            strategy.after_backward(group)
        except RuntimeError as error:
            if several and "backward through the graph a second time" in str(error):
                error.add_note(
                    "truestep: pass a loss of several optimizers to one step: run.step(loss, optimizer=[...])"
                )
            strategy.explain(error)
            raise
        if several:
            for updates in group[1:]:
                updates.window.follow(window)

    def _prepare(self, loss: torch.Tensor, group: tuple[Updates, ...]) -> list[torch.Tensor] | None:
        """Join the optimizers that a loss updates; return the parameters to compute gradients for, None for all."""
        every = self._updates.values()
        for updates in group:
            updates.join(group)
        if not group[0].window.is_open:
            for updates in group:
                updates.optimizer.zero_grad()  # removes gradients of other losses
        if len(group) == len(every):
            return None
        mark_unused(loss, group, every)
        # gradients that this loss adds to parameters of another optimizer are cleared when its window opens
        if group[0].window.accumulate == 1 and not any(u.window.is_open for u in every if u not in group):
            return None
        return [p for updates in group for p in updates.parameters() if p.requires_grad]

    # --- the lines of a step, one at a time ---

    def clip_grad_norm_(self, max_norm: float, optimizer: Optimizers = None) -> torch.Tensor:
        """Scale gradients down to `max_norm`; return the norm before, a tensor of no dimension."""
        return self._clip_to(max_norm, self.index.group(optimizer))

    def optimizer_step(self, optimizer: Optimizers = None) -> bool:
        """Update, step the schedules and close the window; return False if the scaler skipped the update."""
        group = self.index.group(optimizer)
        waiting = [updates for updates in group[0].group if updates.window.is_open and updates not in group]
        last = None if waiting else group[-1]  # the scale is updated once, after all optimizers that share it
        applied = [updates.apply(last=updates is last) for updates in group]
        for updates in group:
            updates.schedule()
            updates.reset()
        return all(applied)

    # --- windows ---

    def flush(self) -> None:
        """Update with the gradients of all open windows, and close them."""
        for group in self.index.open_groups:
            self._close(group)

    def close_rest(self) -> None:
        """Close the windows that are open at the end of a loop; discard those of a step beyond `max_steps`."""
        for group in self.index.open_groups:
            group[0].window.warn_of_rest()
            if self._progress.has_all_steps and self._progress.begins_step(group[0].window):
                group[0].discard()
            else:
                self._close(group)

    def no_open_window(self, where: str) -> None:
        """Raise an error if a loop was left in the middle of a window.

        Args:
            where: the operation that follows, for the message.

        Raises:
            OpenWindow: a window is open, and no loop is under way that could complete it.
        """
        waiting = self.index.open_windows
        if waiting and not self._progress.position.active:
            window = waiting[0].window
            raise OpenWindow(
                f"gradients of {window.micro_steps} of {window.accumulate} micro-steps wait for an update at {where}",
                expected=f'expected closed windows, got an open one for "{waiting[0].name}"',
                remedy="call run.flush() after the loop to update with these gradients, or run.discard() to drop them",
            )

    # --- bodies and epochs ---

    def begin_loop(self) -> None:
        """Begin to count the micro-steps of the first body of a loop."""
        self._progress.end_body()
        for updates in self._updates.values():
            updates.window.begin_body()

    def end_body(self, *, complete: bool) -> None:
        """End the body of a loop.

        Args:
            complete: False if the next body continues the same step.
        """
        for updates in self._updates.values():
            updates.window.end_body()
        if complete and self.cadence.is_watching:
            self.cadence.body_ended()

    def settle(self) -> None:
        """Bring averages and schedules up to date between two bodies."""
        self._averaging.settle()
        for updates in self._updates.values():
            updates.schedule()
        self._progress.end_body()

    def end_epoch(self) -> None:
        """Bring schedules up to date, and compare the updates of the epoch with the plan."""
        for updates in self._updates.values():
            updates.schedule()
        self._progress.end_body()
        self.cadence.epoch_ended(self._progress.epoch, self._progress.global_step)


def _shared(loss: torch.Tensor, weight: Weight, share: float) -> tuple[torch.Tensor, Weight]:
    """Return the loss and the weight of an incomplete batch of several ranks.

    The mean of each rank counts by its number of samples. Sums count by their weights already; those of a rank that
    only repeats samples of another one count as nothing.
    """
    if weight is None:
        return loss * share, None
    return (loss, weight) if share else (loss * 0, weight * 0)


def _check_loss(loss: object) -> None:
    """Raise an error if a loss does not have one element: torch's error names neither the loss nor a remedy."""
    if isinstance(loss, torch.Tensor):
        if loss.numel() == 1:
            return
        raise BadLoss(
            f"the loss of a step has {loss.numel()} elements",
            expected=f"expected a tensor of one element, got one of shape {tuple(loss.shape)}",
            remedy="reduce it: run.step(loss.mean())",
        )
    what = f"a {type(loss).__name__}" if loss is not None else "None"
    remedy = "pass the loss tensor, without .item() or float()"
    if isinstance(loss, dict | tuple | list):
        remedy = "pass the part to minimize, or the sum of its parts"
    raise BadLoss(f"the loss of a step is {what}", expected="expected a tensor of one element", remedy=remedy)
