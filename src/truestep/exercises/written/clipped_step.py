"""One optimizer step with clipped gradients."""

import torch
from torch import nn


def clipped_step(model: nn.Module, optimizer: torch.optim.Optimizer, loss: torch.Tensor, max_norm: float) -> float:
    """Update the model once for this loss, and return the norm of all its gradients before clipping.

    If the norm of all gradients together is larger than `max_norm`, the optimizer uses gradients of this norm.
    """
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return norm.item()
