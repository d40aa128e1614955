"""Optimizers with a step of one kernel (`fused=True`) or of a few kernels (`foreach=True`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, ClassVar

from truestep.experiments.changes.parts.speedup import Speedup, Stage
from truestep.seams.patch import patch

_HOW = ("fused", "foreach", "differentiable", "capturable")
"""Arguments by which a script selects an implementation."""


class _Implementation(Speedup):
    phases = ("optimizer",)
    stage = Stage.OPTIMIZER
    tolerance = 1e-3
    argument: ClassVar[str]
    """Argument that selects the implementation."""

    def install(self, stack: ExitStack) -> None:
        import torch

        for name, kind in vars(torch.optim).items():
            if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer):
                arguments = inspect.signature(kind.__init__).parameters
                if self.argument in arguments and name != "Optimizer":
                    patch(stack, kind, "__init__", self._choosing(kind.__init__))

    def _choosing(self, begin: Any) -> Any:
        signature = inspect.signature(begin)

        @functools.wraps(begin)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            try:
                given = signature.bind(optimizer, *args, **kwargs).arguments
            except TypeError:
                begin(optimizer, *args, **kwargs)
                return
            if any(given.get(how) for how in _HOW) or given.get(self.argument) is False:
                begin(optimizer, *args, **kwargs)
                return
            parameters = given["params"]
            if isinstance(parameters, Iterator):
                parameters = list(parameters)
                if args:
                    args = (parameters, *args[1:])
                else:
                    kwargs["params"] = parameters
            if self._can(parameters):
                self.applied += 1
                kwargs[self.argument] = True
            begin(optimizer, *args, **kwargs)

        return __init__

    def _can(self, parameters: Any) -> bool:
        """Return True if the implementation supports these parameters."""
        raise NotImplementedError


class FusedOptimizer(_Implementation):
    """torch's optimizers with a fused kernel use it if all their parameters are on a device that supports it."""

    name = "fused-optimizer"
    summary = "fused=True for Adam, AdamW, SGD and Adagrad: one kernel for a step"
    lines = "optimizer = torch.optim.Adam(model.parameters(), ..., fused=True)\n# also of AdamW, SGD and Adagrad"
    priority = 70
    excludes = ("foreach-optimizer",)
    argument = "fused"

    def _can(self, parameters: Any) -> bool:
        import torch
        from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

        devices = set(_get_fused_kernels_supported_devices())
        found = list(_tensors(parameters))
        return bool(found) and all(
            isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.device.type in devices
            for tensor in found
        )


class ForeachOptimizer(_Implementation):
    """torch's optimizers step over lists of tensors, as is torch's default on a GPU."""

    name = "foreach-optimizer"
    summary = "foreach=True for torch's optimizers: operations over lists of tensors"
    lines = "optimizer = torch.optim.AdamW(model.parameters(), ..., foreach=True)"
    cpu = True
    argument = "foreach"

    def _can(self, parameters: Any) -> bool:
        import torch

        found = list(_tensors(parameters))
        return bool(found) and all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.is_cpu for t in found)


def _tensors(parameters: Any) -> Iterator[Any]:
    """Yield the tensors in the first argument of an optimizer: tensors, named tensors, or groups of either."""
    for entry in parameters if isinstance(parameters, list | tuple | dict) else [parameters]:
        if isinstance(entry, dict):
            inside = entry.get("params", ())
            if isinstance(inside, Iterator):
                inside = entry["params"] = list(inside)
            yield from _tensors(inside if isinstance(inside, list | tuple) else [inside])
        elif isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
            yield entry[1]
        else:
            yield entry
