"""A loop that learns one batch by heart."""

import torch
from torch import nn


def overfit(model: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int, lr: float) -> list[float]:
    """Train on one batch with Adam and cross entropy, and return the loss before each step as a number.

    The model is in train mode while it learns, and the gradients of one step must not reach the next one.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
