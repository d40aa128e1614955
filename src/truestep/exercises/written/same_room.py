"""Move a batch to the device of a model."""

from typing import Any

import torch
from torch import nn


def to_room(batch: Any, model: nn.Module) -> Any:
    """Return the batch with all tensors on the device of the model's parameters, and the rest as it was.

    A batch is a tensor, a dict, a list or a tuple of batches, or anything else. The batch itself must not change.
    """
    device = next(model.parameters()).device
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_room(value, model) for key, value in batch.items()}
    if isinstance(batch, list | tuple):
        return type(batch)(to_room(value, model) for value in batch)
    return batch
