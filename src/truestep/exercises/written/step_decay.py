"""A learning rate that falls every five epochs."""

import torch
from torch import nn


def train(model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]], epochs: int) -> list[float]:
    """Train with SGD (lr 0.1), MSE and StepLR: a tenth every five epochs. Return the learning rate of each epoch.

    `batches` is one pass over the data. The schedule is stepped at the right place, the right number of times.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.1)
    rates = []
    for _ in range(epochs):
        rates.append(scheduler.get_last_lr()[0])
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        scheduler.step()
    return rates
