"""A training with truestep.Run that saves every few steps: dropout, random draws in the data, workers, an average."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import Dataset

import truestep as ts


@dataclass
class Settings(ts.Settings):
    """The options."""

    workers: int = 0
    """Processes that read."""
    ema: bool = False
    """Whether an average of the weights is kept."""


class Noisy(Dataset):
    """Lines of numbers, other ones each time that they are read."""

    def __init__(self):
        self.x = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + 0.1 * torch.randn(5), self.x[index, :1]


if __name__ == "__main__":
    run = ts.Run(Settings.from_flags(out="out", max_epochs=4, save_every_n_steps=4))
    train = run.loader(Noisy(), 6, shuffle=True, num_workers=run.settings.workers)
    model = run.model(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1)))
    optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
    run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.1))
    average = run.ema(model, decay=0.9) if run.settings.ema else None
    for epoch in run.epochs():
        for x, y in run.train(train, model):
            run.step(nn.functional.mse_loss(model(x), y))
        run.save()
