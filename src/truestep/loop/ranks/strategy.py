"""Strategy of a run: the operations that differ between one process and several ranks.

`Run` calls them, and contains nothing else about ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import torch
from torch import nn

if TYPE_CHECKING:
    from truestep.loop.optim.updates import Updates

T = TypeVar("T")
Number = float | torch.Tensor


class Strategy(Protocol):
    """Operations of a run that depend on the number of processes.

    Attributes:
        rank: number of this process, from 0.
        world_size: number of processes.
        weight: factor of this rank's mean loss of the current batch in the mean over ranks; 1 for equal batches.
    """

    rank: int
    world_size: int
    weight: float

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device and prepare it, in place: the keys of its `state_dict` stay the same."""

    def begin(self, models: Iterable[nn.Module], *, resumed: bool) -> None:
        """Give all ranks the values of rank 0, and each one other random numbers, before the first loop."""

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        """Give all ranks the buffers of rank 0, such as the statistics of batch normalisation."""

    def before_backward(self, group: Sequence[Updates], loss: torch.Tensor) -> None:
        """Prepare the last backward pass of a window, in which gradients are averaged over ranks."""

    def average(self, updates: Updates) -> None:
        """Average the gradients of an optimizer that no backward pass averaged."""

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

    def close(self) -> None:
        """Release everything that belongs to the group."""


class SingleProcess:
    """One process, one device."""

    rank = 0
    world_size = 1
    weight = 1.0

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device."""
        model.to(device)

    def begin(self, models: Iterable[nn.Module], *, resumed: bool) -> None:
        """Do nothing."""

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        """Do nothing."""

    def before_backward(self, group: Sequence[Updates], loss: torch.Tensor) -> None:
        """Do nothing."""

    def average(self, updates: Updates) -> None:
        """Do nothing."""

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

    def close(self) -> None:
        """Do nothing."""
