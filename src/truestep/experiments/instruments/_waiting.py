"""Waiting for the device that trains, so that the clock reads what the device took."""

from __future__ import annotations

from collections.abc import Callable


def waiting(device: str) -> Callable[[], None] | None:
    """Return what waits for a device of this type, None for the CPU, which is never behind."""
    if device in ("cpu", "meta"):
        return None
    import torch

    wait: Callable[[], None] = torch.get_device_module(device).synchronize
    return wait
