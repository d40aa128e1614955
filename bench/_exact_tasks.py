"""The two trainings of `exactness.py`: a partial last window, and a run that dies in its eighth step."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

MICRO_BATCHES, ACCUMULATE = 10, 4
SAMPLES, BATCH, SAVED_AT = 160, 4, 7


class Ones(Dataset[Any]):
    """Ten samples, one per micro-batch; each gives the single weight a gradient of 1."""

    def __init__(self, *, named: bool = False) -> None:
        self.named = named

    def __len__(self) -> int:
        return MICRO_BATCHES

    def __getitem__(self, index: int) -> Any:
        return {"x": torch.ones(1)} if self.named else torch.ones(1)


class Weight(nn.Module):
    """One weight, initially 0; SGD with lr 1 subtracts the gradient of each update, so it ends at minus their sum."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.weight * x).mean()

    @property
    def sum_of_updates(self) -> float:
        return -self.weight.item()


@dataclass(frozen=True)
class Case:
    """One difficulty for a resume.

    Attributes:
        name: the column.
        dropout: of the model.
        draws: whether `__getitem__` draws random numbers.
        workers: processes that read samples.
    """

    name: str
    dropout: float = 0.0
    draws: bool = False
    workers: int = 0


CASES = (
    Case("plain"),
    Case("dropout", dropout=0.3),
    Case("draws", draws=True),
    Case("all, 2 workers", dropout=0.3, draws=True, workers=2),
)


@dataclass(frozen=True)
class Training:
    """One process of a training.

    Attributes:
        case: the difficulty.
        folder: where checkpoints are kept, shared by the process that dies and the one that resumes.
        dies: whether it exits without cleanup in the step after its first checkpoint.
        resumes: whether it continues from that checkpoint.
    """

    case: Case
    folder: Path
    dies: bool = False
    resumes: bool = False

    def net(self) -> Net:
        return Net(self.case.dropout, SAVED_AT if self.dies else None)

    def samples(self, *, named: bool = False) -> Noisy:
        return Noisy(draws=self.case.draws, named=named)


class Net(nn.Module):
    """An MLP with dropout and a forward pass that can end the process.

    Args:
        dropout: its probability.
        passes: forward passes after which the next one ends the process.
    """

    def __init__(self, dropout: float, passes: int | None = None) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 1))
        self.left, self.passed = passes, 0

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self.passed == self.left:
            os._exit(9)
        self.passed += 1
        return nn.functional.mse_loss(self.layers(x), labels)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


class Noisy(Dataset[Any]):
    """Samples that may carry fresh noise every time they are read, from torch's own generator."""

    def __init__(self, *, draws: bool, named: bool) -> None:
        made = torch.Generator().manual_seed(2)
        self.x = torch.randn(SAMPLES, 8, generator=made)
        self.y = self.x.sum(dim=1, keepdim=True) + 0.1 * torch.randn(SAMPLES, 1, generator=made)
        self.draws, self.named = draws, named

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        x = self.x[index] + 0.1 * torch.randn(8) if self.draws else self.x[index]
        return {"x": x, "labels": self.y[index]} if self.named else (x, self.y[index])
