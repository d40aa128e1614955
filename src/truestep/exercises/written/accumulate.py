"""The gradient of a large batch from small ones."""

import torch
from torch import nn


def accumulate(model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Leave in `grad` the gradient of the mean cross entropy over all samples, with one backward pass per batch.

    The batches may have different sizes. Gradients that were there before do not count.
    """
    model.zero_grad()
    samples = sum(len(y) for _, y in batches)
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / samples
        loss.backward()
