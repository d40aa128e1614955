"""The task of all loops of `toolkit_step.py`, and the clock that they iterate over."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

Batch = tuple[torch.Tensor, torch.Tensor]
Item = TypeVar("Item")
MAX_NORM, LOG_EVERY, RISING = 1.0, 50, 100


@dataclass
class Clock:
    """Reads the processor time at the request for the first timed batch, and for the batch after the last one.

    Args:
        warm: steps before the timed ones.
        count: timed steps.
    """

    warm: int
    count: int
    begun: float = 0.0
    ended: float = 0.0

    @property
    def steps(self) -> int:
        """All steps; one more than are timed, since a loop with a known length does not request another batch."""
        return self.warm + self.count + 1

    @property
    def step_us(self) -> float:
        return (self.ended - self.begun) / self.count * 1e6

    def over(self, batches: Iterable[Item]) -> Iterator[Item]:
        """Yield the batches of another iterable."""
        for number, batch in enumerate(batches):
            if number == self.warm:
                self.begun = time.process_time()
            elif number == self.warm + self.count:
                self.ended = time.process_time()
            yield batch


class Ready(Iterable[Any], Sized):
    """A loader with prepared batches: `loader.py` measures the cost of a loader."""

    def __init__(self, clock: Clock, batch: Any) -> None:
        self.clock, self.batch = clock, batch

    def __len__(self) -> int:
        return self.clock.steps

    def __iter__(self) -> Iterator[Any]:
        return self.clock.over(itertools.repeat(self.batch, self.clock.steps))


@dataclass(frozen=True)
class Task:
    """One training: batches, a clock, and a folder for the output of a loop."""

    clock: Clock
    folder: Path

    def batch(self) -> Batch:
        made = torch.Generator().manual_seed(1)
        return torch.randn(32, 16, generator=made), torch.randn(32, 1, generator=made)

    def samples(self) -> Batch:
        """All batches as one data set in memory, each a copy of the one batch, so that every loop trains the same."""
        x, y = self.batch()
        return x.repeat(self.clock.steps, 1), y.repeat(self.clock.steps, 1)

    def ready(self) -> Ready:
        return Ready(self.clock, self.batch())


Loop = Callable[[Task], nn.Module]


def net() -> nn.Module:
    """The smallest step: an MLP 16-32-1."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def rising(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LambdaLR:
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / RISING))
