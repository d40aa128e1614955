"""Strategy of a run: the operations that differ between one process and several ranks.

`Run` calls them, and contains nothing else about ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import torch
from torch import nn

if TYPE_CHECKING:
    from truestep.loop.optim.updates import Updates
    from truestep.model.blocks import Kinds

T = TypeVar("T")
Number = float | torch.Tensor


class Strategy(Protocol):
    """Operations of a run that depend on the number of processes.

    Attributes:
        rank: number of this process, from 0.
        world_size: number of processes.
        weight: factor of this rank's mean loss of the current batch in the mean over ranks; 1 for equal batches.
        shards: True if each rank has a part of each parameter.
    """

    rank: int
    world_size: int
    weight: float
    shards: bool

    def prepare(self, model: nn.Module, device: torch.device, kinds: Kinds | None = None) -> None:
        """Move the model to the device and prepare it, in place: the keys of its `state_dict` stay the same.

        Args:
            model: any module.
            device: of this process.
            kinds: types of the blocks that are gathered one at a time, where parameters are divided over ranks.
        """

    def join_statistics(self, model: nn.Module) -> None:
        """Make layers of batch normalisation compute their statistics over all ranks."""

    def check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Raise an error if the ranks cannot train with an optimizer."""

    def begin(self, models: Iterable[nn.Module], *, resumed: bool) -> None:
        """Give all ranks the values of rank 0, and each one other random numbers, before the first loop."""

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        """Give all ranks the buffers of rank 0, such as the statistics of batch normalisation."""

    def before_backward(self, group: Sequence[Updates], loss: torch.Tensor, *, last: bool) -> None:
        """Prepare a backward pass; in the last one of a window, gradients are averaged over ranks."""

    def after_backward(self, group: Sequence[Updates]) -> None:
        """Complete a backward pass: in the last one of a window, gradients are averaged afterwards."""

    def leaves(self, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return the tensors for which a backward pass computes the gradients of some parameters."""

    def average(self, updates: Updates) -> None:
        """Average the gradients of an optimizer that no backward pass averaged."""

    def discard(self, updates: Updates) -> None:
        """Drop the gradients of an optimizer that wait to be averaged."""

    def even(self, batches: Iterator[T]) -> Iterator[T]:
        """Return the batches of an evaluation, for models that all ranks call or none."""

    def mean(self, value: Number) -> Number:
        """Return the mean of a number over ranks."""

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum of a tensor over ranks."""

    def of_first(self, value: T) -> T:
        """Return the value of rank 0."""

    def gathered(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank."""

    def all_have(self, own: bool) -> bool:
        """Return True if all ranks have something."""

    def agreed(self, flags: Callable[[], Sequence[int]], count: int, *, at_once: bool) -> Sequence[int]:
        """Return the largest of each flag over ranks; with several, those of a moment before unless `at_once`.

        Args:
            flags: returns the flags of this rank.
            count: their number.
            at_once: wait for the current flags of all ranks.
        """

    def barrier(self) -> None:
        """Return when all ranks have called this."""

    def explain(self, error: BaseException) -> None:
        """Raise an error that names the ranks that did not answer, if `error` of torch is about these."""

    def ended(self, how: str) -> None:
        """Write for the other ranks how the run of this one has ended."""

    def close(self) -> None:
        """Release everything that belongs to the group."""


class SingleProcess:
    """One process, one device."""

    rank = 0
    world_size = 1
    weight = 1.0
    shards = False

    def prepare(self, model: nn.Module, device: torch.device, kinds: Kinds | None = None) -> None:
        """Move the model to the device."""
        model.to(device)

    def join_statistics(self, model: nn.Module) -> None:
        """Do nothing."""

    def check_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Do nothing."""

    def begin(self, models: Iterable[nn.Module], *, resumed: bool) -> None:
        """Do nothing."""

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        """Do nothing."""

    def before_backward(self, group: Sequence[Updates], loss: torch.Tensor, *, last: bool) -> None:
        """Do nothing."""

    def after_backward(self, group: Sequence[Updates]) -> None:
        """Do nothing."""

    def leaves(self, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return the parameters."""
        return parameters

    def average(self, updates: Updates) -> None:
        """Do nothing."""

    def discard(self, updates: Updates) -> None:
        """Do nothing."""

    def even(self, batches: Iterator[T]) -> Iterator[T]:
        """Return the batches."""
        return batches

    def mean(self, value: Number) -> Number:
        """Return the number."""
        return value

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return the tensor."""
        return values

    def of_first(self, value: T) -> T:
        """Return the value."""
        return value

    def gathered(self, value: T) -> list[T]:
        """Return a list of the value."""
        return [value]

    def all_have(self, own: bool) -> bool:
        """Return the argument."""
        return own

    def agreed(self, flags: Callable[[], Sequence[int]], count: int, *, at_once: bool) -> Sequence[int]:
        """Return the current flags."""
        return flags()

    def barrier(self) -> None:
        """Return at once."""

    def explain(self, error: BaseException) -> None:
        """Do nothing."""

    def ended(self, how: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
