"""Batches in pinned memory, and copies of them to the GPU that do not block."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.loader_arguments import LoaderArguments, is_of_toolkit
from truestep.experiments.changes.parts.speedup import Speedup, Stage
from truestep.seams.patch import patch


class PinMemory(LoaderArguments):
    """Batches are in pinned memory, from which copies to the GPU are faster."""

    name = "pin-memory"
    summary = "pin_memory=True of DataLoader: faster copies to the GPU"
    lines = "DataLoader(..., pin_memory=True)"
    priority = 40
    accelerator = True

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        return {} if given.get("pin_memory") or is_of_toolkit(given["dataset"]) else {"pin_memory": True}


class NonBlocking(Speedup):
    """`tensor.to` and `tensor.cuda` do not block if they copy a pinned tensor to a GPU; copies to the CPU block."""

    name = "non-blocking"
    summary = "non_blocking=True for copies of pinned batches to the GPU"
    lines = "x = x.to(device, non_blocking=True)   # with pin_memory=True"
    phases = ("data",)
    stage = Stage.LOADER
    accelerator = True
    follows = ("pin-memory",)

    def install(self, stack: ExitStack) -> None:
        import torch

        def to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if "non_blocking" not in kwargs and _goes_up(tensor, args, kwargs) and not any(a is True for a in args):
                self.applied += 1
                kwargs["non_blocking"] = True
            return to_of_torch(tensor, *args, **kwargs)

        def cuda(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if "non_blocking" not in kwargs and len(args) < 2 and tensor.device.type == "cpu" and tensor.is_pinned():
                self.applied += 1
                kwargs["non_blocking"] = True
            return cuda_of_torch(tensor, *args, **kwargs)

        to_of_torch = patch(stack, torch.Tensor, "to", to)
        cuda_of_torch = patch(stack, torch.Tensor, "cuda", cuda)


def _goes_up(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if a call copies a pinned tensor to a GPU."""
    import torch

    device = kwargs.get("device", args[0] if args else None)
    if isinstance(device, torch.Tensor):
        device = device.device
    if isinstance(device, int) and not isinstance(device, bool):
        device = f"cuda:{device}"
    is_up = isinstance(device, str | torch.device) and torch.device(device).type == "cuda"
    return bool(is_up and tensor.device.type == "cpu" and tensor.is_pinned())
