"""The line that a run prints at its first batch: models, dtypes, devices, and the shapes of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from truestep.seams.divided import is_divided
from truestep.seams.wrappers import uncompiled


def introduction(models: Mapping[str, nn.Module], batch: Any, precision: str) -> str:
    """Return the description of models and batch, in one line.

    Args:
        models: models of the run, by name.
        batch: the first batch, on the device; None for loops without a loader.
        precision: precision of the forward pass.

    Example:
        >>> introduction({"model": nn.Linear(4, 2)}, (torch.ones(8, 4), torch.zeros(8, dtype=torch.long)), "bf16")
        'Linear (10 parameters, float32, cpu), forward pass in bf16; first batch: (8, 4) float32, (8,) int64, cpu'
    """
    words = ", ".join(_model(model) for model in models.values()) or "no model"
    said = f"{words}, forward pass in {precision}"
    tensors = list(_tensors(batch))
    if tensors:
        shapes = [f"{tuple(tensor.shape)} {_short(tensor.dtype)}" for tensor in tensors[:4]]
        more = ["..."] if len(tensors) > 4 else []
        devices = dict.fromkeys(str(tensor.device) for tensor in tensors)
        said += f"; first batch: {', '.join([*shapes, *more, *devices])}"
    return said


def _model(model: nn.Module) -> str:
    inner: nn.Module = uncompiled(model)
    parameters = [parameter for parameter in inner.parameters() if not is_lazy(parameter)]
    count = sum(parameter.numel() for parameter in parameters)
    kinds = dict.fromkeys(_short(parameter.dtype) for parameter in parameters)
    devices = dict.fromkeys(str(parameter.device) for parameter in parameters)
    words = [f"{_count(count)} parameters", *kinds, *devices]
    frozen = sum(parameter.numel() for parameter in parameters if not parameter.requires_grad)
    if frozen:
        words.insert(1, f"{_count(frozen)} frozen")
    name = type(inner).__name__
    if any(map(is_divided, parameters[:1])):
        name = name.removeprefix("FSDP")  # the class that fully_shard derives from that of the model
    return f"{name} ({', '.join(words)})"


def _tensors(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for part in batch.values():
            yield from _tensors(part)
    elif isinstance(batch, tuple | list):
        for part in batch:
            yield from _tensors(part)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _count(number: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if number >= size:
            return f"{number / (size if letter != 'k' else 1000):.1f} {letter}"
    return str(number)
