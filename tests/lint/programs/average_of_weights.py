"""An exponential average of the weights, written out, that is evaluated in place of the model."""

import copy

import torch
from torch import nn


class Ema:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for mine, other in zip(self.module.state_dict().values(), model.state_dict().values(), strict=True):
            if mine.dtype.is_floating_point:
                mine.mul_(self.decay).add_(other, alpha=1 - self.decay)
            else:
                mine.copy_(other)


def main(train_loader, val_loader):
    model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
    ema = Ema(model)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(30):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            ema.update(model)  # broken[average-never-updated]: pass
        with torch.no_grad():
            correct = sum((ema.module(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(correct / len(val_loader.dataset))
