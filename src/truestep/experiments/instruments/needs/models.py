"""Sizes of the parameters, gradients, buffers, optimizer state and blocks of a training.

A storage counts once: a tied weight, or a view, is not counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from truestep.loop.ranks.sharding import units_of
from truestep.model.blocks import repeated_blocks


@dataclass(frozen=True, slots=True)
class Held:
    """The tensors that live from step to step.

    Attributes:
        parameters: all parameters of the models and the optimizers.
        buffers: all buffers of the models.
        state: tensors in the state of the optimizers.
    """

    parameters: list[torch.Tensor]
    buffers: list[torch.Tensor]
    state: list[torch.Tensor]

    @property
    def gradients(self) -> list[torch.Tensor]:
        """The gradients that exist now."""
        return [parameter.grad for parameter in self.parameters if parameter.is_leaf and parameter.grad is not None]

    @property
    def device(self) -> str:
        """The device with most of the parameters, as the profiler names it: "cpu", "cuda:0"."""
        sizes: dict[str, int] = {}
        for parameter in self.parameters:
            name = str(parameter.device)
            sizes[name] = sizes.get(name, 0) + parameter.nbytes
        return max(sizes, key=sizes.__getitem__, default="cpu")


def held(models: Iterable[nn.Module], optimizers: Iterable[Any]) -> Held:
    """Return the tensors of models and optimizers."""
    parameters: dict[int, torch.Tensor] = {}
    buffers: dict[int, torch.Tensor] = {}
    state: list[torch.Tensor] = []
    for model in models:
        parameters.update((id(tensor), tensor) for tensor in model.parameters())
        buffers.update((id(tensor), tensor) for tensor in model.buffers())
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            parameters.update((id(tensor), tensor) for tensor in group["params"])
        state += _tensors(optimizer.state)
    return Held(list(parameters.values()), list(buffers.values()), state)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _tensors(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _tensors(inner)


def storages(tensors: Iterable[torch.Tensor]) -> list[Any]:
    """Return the storages of dense tensors, each once."""
    found = {}
    for tensor in tensors:
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            found[storage._cdata] = storage
    return list(found.values())


def total(tensors: Iterable[torch.Tensor]) -> int:
    """Return the bytes of tensors."""
    return sum(storage.nbytes() for storage in storages(tensors))


def by_type(tensors: Iterable[torch.Tensor]) -> dict[str, list[int]]:
    """Return the number of values and bytes by type, such as "float32"."""
    found: dict[str, list[int]] = {}
    for tensor in tensors:
        entry = found.setdefault(str(tensor.dtype).removeprefix("torch."), [0, 0])
        entry[0] += tensor.numel()
        entry[1] += tensor.nbytes
    return found


def blocks(models: Iterable[nn.Module]) -> dict[str, Any]:
    """Return the blocks that FSDP2 gathers one by one: those that `strategy="fsdp"` of a run takes.

    Returns:
        "largest", "largest_gradients": bytes of the parameters of the largest block, and of those that are trained;
        "outside": bytes of the parameters outside of all blocks; "count"; "kind": the most frequent class.
    """
    found: list[nn.Module] = []
    everything: list[torch.Tensor] = []
    for model in models:
        repeated = repeated_blocks(model)
        found += [repeated[name] for name in units_of(model, None)]
        everything += model.parameters()
    block = max(found, key=lambda part: total(part.parameters()), default=None)
    inside = {id(parameter) for part in found for parameter in part.parameters()}
    kinds = [type(part).__name__ for part in found]
    return {
        "largest": 0 if block is None else total(block.parameters()),
        "largest_gradients": 0 if block is None else total(p for p in block.parameters() if p.requires_grad),
        "outside": total(parameter for parameter in everything if id(parameter) not in inside),
        "count": len(found),
        "kind": max(kinds, key=kinds.count, default=""),
    }
