"""Synchronize with the training device, so that clocks include its work."""

from __future__ import annotations

from collections.abc import Callable


def waiting(device: str) -> Callable[[], None] | None:
    """Return the function that synchronizes with a device type; None for the CPU, which needs none."""
    if device in ("cpu", "meta"):
        return None
    import torch

    wait: Callable[[], None] = torch.get_device_module(device).synchronize
    return wait
