"""Four questions that find four silent bugs."""

import torch
from torch import nn


def has_old_gradients(model: nn.Module) -> bool:
    """Return True if a backward pass would add to gradients that are there: any that is neither None nor zero."""
    return any(p.grad is not None and bool(p.grad.any()) for p in model.parameters())


def is_ready_for_evaluation(model: nn.Module) -> bool:
    """Return True if all layers are in eval mode, also those that were switched on their own."""
    return not any(module.training for module in model.modules())


def devices(model: nn.Module, batch: tuple[torch.Tensor, ...]) -> set[str]:
    """Return the types of all devices in use, such as {"cpu"}: of parameters, buffers and the tensors of a batch."""
    return {tensor.device.type for tensor in (*model.parameters(), *model.buffers(), *batch)}


def can_learn_from(loss: torch.Tensor) -> bool:
    """Return True if `loss.backward()` can reach a parameter: the loss is one number with a graph behind it."""
    return loss.numel() == 1 and loss.requires_grad
