"""Images with their channels last in memory, as convolutions read them fastest."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.speedups.speedup import Tuning
from truestep.experiments.running.outermost_calls import RootCalls


class ChannelsLast(Tuning):
    """Models with two-dimensional convolutions, and the images they are given, are laid out channels last."""

    name = "channels-last"
    summary = "convolutions and images in memory format channels_last"
    lines = "model = model.to(memory_format=torch.channels_last)\nx = x.to(memory_format=torch.channels_last)"
    tolerance = 1e-3

    def install(self, stack: ExitStack) -> None:
        _LayingOut(self, stack).listen(stack)


class _LayingOut(RootCalls):
    def __init__(self, change: ChannelsLast, stack: ExitStack) -> None:
        super().__init__()
        self._change = change
        self._stack = stack
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def entered(self, module: Any) -> Any:
        import torch
        from torch import nn

        if module in self._seen:
            return
        self._seen.add(module)
        if not any(isinstance(part, nn.Conv2d | nn.ConvTranspose2d) for part in module.modules()):
            return
        module.to(memory_format=torch.channels_last)
        self._change.applied += 1

        def laid_out(_: Any, args: Any, kwargs: Any) -> Any:
            return tuple(map(_channels_last, args)), {name: _channels_last(value) for name, value in kwargs.items()}

        self._stack.callback(module.register_forward_pre_hook(laid_out, with_kwargs=True).remove)


def _channels_last(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor) and value.dim() == 4:
        return value.contiguous(memory_format=torch.channels_last)
    return value
