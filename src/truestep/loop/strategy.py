"""How one step is spread over processes. The seam for several ranks; one process needs nothing.

A strategy answers the few questions whose answer differs between one process and several. `Run` asks them, and knows
nothing else about ranks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import nn


class Strategy(Protocol):
    """What a run asks about its processes."""

    rank: int
    world_size: int

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device and make it ready, in place: the keys of its `state_dict` stay plain."""

    def accumulating(self, *, closing: bool) -> AbstractContextManager[object]:
        """Return the context of a backward pass: gradients are exchanged only where the window closes."""


class SingleProcess:
    """One process, one device."""

    rank = 0
    world_size = 1

    def __init__(self) -> None:
        self._nothing = nullcontext()

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device."""
        model.to(device)

    def accumulating(self, *, closing: bool) -> AbstractContextManager[object]:
        """Return a context that does nothing."""
        return self._nothing
