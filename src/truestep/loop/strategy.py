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
    limits_backward: bool
    """Whether a backward pass can be limited to the parameters of one optimizer."""

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device and make it ready, in place: the keys of its `state_dict` stay plain."""

    def accumulating(self, *, closing: bool) -> AbstractContextManager[object]:
        """Return the context of a backward pass: gradients are exchanged only where the window closes."""

    def agree(self, number: int) -> int:
        """Return the largest of the numbers that the processes give: a signal that one of them got."""


class SingleProcess:
    """One process, one device."""

    rank = 0
    world_size = 1
    limits_backward = True

    def __init__(self) -> None:
        self._nothing = nullcontext()

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device."""
        model.to(device)

    def accumulating(self, *, closing: bool) -> AbstractContextManager[object]:
        """Return a context that does nothing."""
        return self._nothing

    def agree(self, number: int) -> int:
        """Return the number."""
        return number
