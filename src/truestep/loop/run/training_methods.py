"""The methods of `Run` in a training loop. Each one delegates to a part; the step itself is in `stepper.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from truestep.model.boundary import WithPostMortem
from truestep.model.modes import train_mode

if TYPE_CHECKING:
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.optim.precision import Precision
    from truestep.loop.optim.updates_index import Optimizers
    from truestep.loop.position.progress import RunProgress
    from truestep.loop.run.logging import RunLog
    from truestep.loop.run.loops import Loops
    from truestep.loop.run.stepper import Closure, Stepper


class TrainingMethods:
    """Epochs, loops and the lines of a step."""

    precision: Precision
    _progress: RunProgress
    _stepper: Stepper
    _loops: Loops
    _log: RunLog

    @property
    def global_step(self) -> int:
        """Number of steps: closed windows. Windows of several optimizers that close in one body are one step."""
        return self._progress.global_step

    @property
    def epoch(self) -> int:
        """Number of completed epochs, which is the index of the current one."""
        return self._progress.position.epoch

    @property
    def grad_norm(self) -> torch.Tensor | None:
        """Norm of the gradients before the last clipping, a tensor of no dimension; None before the first."""
        return self._stepper.grad_norm

    @property
    def skipped_steps(self) -> int:
        """Number of updates that fp16 skipped because a gradient overflowed."""
        return self._log.skipped_steps

    def epochs(self) -> Iterator[int]:
        """Yield the number of each epoch, from the position of the run to `max_epochs`, or until `max_steps` are taken.

        A resumed run starts the interrupted epoch again: the part of its body before the training loop is repeated,
        with the random state of the start of the epoch; loops that had ended yield nothing.
        """
        return self._loops.epochs()

    def train(self, loader: Loader | GivenLoader | DataLoader[Any], *models: nn.Module) -> Iterator[Any]:
        """Yield the batches of one pass on the run's device, from the position of the run.

        A resumed pass starts with a later batch, but `enumerate` with 0: count in `run.state` or by `run.global_step`.

        Args:
            loader: from `run.loader()`, or a DataLoader.
            *models: set in train mode if their root is in eval mode.

        Raises:
            OpenWindow: gradients of the previous loop wait for an update.
        """
        for model in models:
            train_mode(model)
        return self._loops.train(loader)

    def steps(self, count: int | None = None, *models: nn.Module) -> Iterator[int]:
        """Yield the number of each of `count` steps, or up to `max_steps`, from the position of the run.

        For loops without a loader: reinforcement learning, physics, batches drawn by the script. With accumulation, a
        body may make all micro-steps of a step, or one of them: until the window closes, the next body gets the same
        number. A body without a step, or with several updates, uses one number.

        Args:
            count: number of steps; `max_steps` if None.
            *models: set in train mode if their root is in eval mode.

        Raises:
            BadSettings: count is missing, and the run has no `max_steps`.
            OpenWindow: gradients of the previous loop wait for an update.

        Example:
            >>> from truestep import Run
            >>> run = Run(accumulate=2, device="cpu", watch=False)
            >>> model = run.model(nn.Linear(1, 1))
            >>> optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
            >>> [(step, run.step(model(torch.ones(1)).sum())) for step in run.steps(2)]
            [(0, False), (0, True), (1, False), (1, True)]
        """
        for model in models:
            train_mode(model)
        return self._loops.steps(count)

    def step(
        self,
        loss: torch.Tensor | Closure,
        *,
        weight: int | float | torch.Tensor | None = None,
        optimizer: Optimizers = None,
    ) -> bool:
        """Take one micro-step, and one step at the end of the window.

        Args:
            loss: a tensor of one element: a mean, or with `weight` a sum. Or, for optimizers that evaluate the loss
                several times (LBFGS, SAM), a function that computes and returns the mean, without a backward pass.
            weight: content of a summed loss (tokens, samples): the step's gradient is then that of the sum of all
                losses in the window divided by the sum of their weights.
            optimizer: the optimizer to update, or a list of those that this loss updates together (Muon for matrices,
                AdamW for the rest); optional if the run has one.

        Returns:
            True if the window was closed. A window that is open at the end of a loop over a loader closes at the last
            micro-step of the last body; if bodies differ in their number of micro-steps or none came before, it closes
            after that body, and this returns False.
        """
        return self._stepper.step(loss, weight, optimizer)

    def backward(
        self,
        loss: torch.Tensor,
        *,
        weight: int | float | torch.Tensor | None = None,
        optimizer: Optimizers = None,
    ) -> None:
        """Divide the loss by the size of its window, scale it, and run its backward pass: one micro-step.

        In a run with several optimizers, the window of this one opens on cleared gradients, and with accumulation the
        backward pass reaches only the parameters of this one, or of those in the list.
        """
        self._stepper.backward(loss, weight, optimizer)

    def unscale_(self, optimizer: Optimizers = None) -> None:
        """Unscale and correct the gradients, once per window: they become those of the mean of its losses."""
        for updates in self._stepper.index.group(optimizer):
            updates.unscale_()

    def clip_grad_norm_(self, max_norm: float, optimizer: Optimizers = None) -> torch.Tensor:
        """Scale gradients down to `max_norm`; return the norm before, a tensor of no dimension.

        Args:
            max_norm: maximum norm of the gradients of all its parameters together, and of all optimizers in a list.
            optimizer: the optimizer, or a list of those that one loss updates; optional if the run has one.
        """
        return self._stepper.clip_grad_norm_(max_norm, optimizer)

    def optimizer_step(self, optimizer: Optimizers = None) -> bool:
        """Update, step the schedules and close the window; return False if the scaler skipped the update."""
        return self._stepper.optimizer_step(optimizer)

    def zero_grad(self, optimizer: Optimizers = None) -> None:
        """Clear the gradients of one optimizer or several; an open window is dropped."""
        for updates in self._stepper.index.group(optimizer):
            updates.discard()

    def flush(self) -> None:
        """Update with the gradients of open windows, after a loop that was left in the middle of a window."""
        self._stepper.flush()

    def discard(self) -> None:
        """Drop the gradients of open windows."""
        for updates in self._stepper.index.open_windows:
            updates.discard()

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context for the forward pass and the loss, in the precision of the run.

        An error of torch that leaves it has a note that names the tensors that did not fit, if they are certain.
        """
        return WithPostMortem(self.precision.autocast())
