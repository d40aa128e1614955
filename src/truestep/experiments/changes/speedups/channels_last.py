"""Convolutions and images in memory format channels_last, which convolutions read fastest."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.model_changes import ModelChange


class ChannelsLast(ModelChange):
    """Models with two-dimensional convolutions and their four-dimensional inputs are in memory format channels_last."""

    name = "channels-last"
    summary = "convolutions and images in memory format channels_last"
    lines = "model = model.to(memory_format=torch.channels_last)\nx = x.to(memory_format=torch.channels_last)"
    priority = 50
    tolerance = 1e-3
    combines = True

    def change(self, module: Any, stack: ExitStack) -> int:
        import torch
        from torch import nn

        if not any(isinstance(part, nn.Conv2d | nn.ConvTranspose2d) for part in module.modules()):
            return 0
        module.to(memory_format=torch.channels_last)

        def laid_out(_: Any, args: Any, kwargs: Any) -> Any:
            return tuple(map(_channels_last, args)), {name: _channels_last(value) for name, value in kwargs.items()}

        stack.callback(module.register_forward_pre_hook(laid_out, with_kwargs=True).remove)
        return 1


def _channels_last(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor) and value.dim() == 4:
        return value.contiguous(memory_format=torch.channels_last)
    return value
