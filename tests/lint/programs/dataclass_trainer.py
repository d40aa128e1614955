"""A trainer as a dataclass, with fields that are made after `__init__`."""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader


@dataclass
class Trainer:
    model: nn.Module
    loader: DataLoader
    lr: float = 1e-3
    epochs: int = 10
    optimizer: torch.optim.Optimizer = field(init=False)
    scheduler: torch.optim.lr_scheduler.LRScheduler = field(init=False)
    history: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.lr)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=self.lr, epochs=self.epochs, steps_per_epoch=len(self.loader)
        )

    def fit(self) -> "Trainer":
        self.model.train()
        for _ in range(self.epochs):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()  # broken[scheduler-never-stepped]: pass
                self.history.append(loss.item())
        return self
