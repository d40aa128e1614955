"""How one step is spread over processes. The seam for several ranks; one process needs nothing.

A strategy answers the few questions whose answer differs between one process and several. `Run` asks them, and knows
nothing else about ranks.
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import nn

from truestep.errors import SeveralProcesses


class Strategy(Protocol):
    """What a run asks about its processes."""

    rank: int
    world_size: int

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device and make it ready, in place: the keys of its `state_dict` stay plain."""

    def accumulating(self, *, closing: bool) -> AbstractContextManager[object]:
        """Return the context of a backward pass: gradients are exchanged only where the window closes."""


_RANK_0_FIRST_S = 5.0
"""A launcher ends all ranks when the first one fails: the others wait, so that rank 0 can say why."""


def check_one_process() -> None:
    """Refuse a run in one of several processes: each would train a copy of its own, on the same batches.

    Rank 0 raises the error; the other ranks print nothing and exit with code 1 a few seconds later.

    Raises:
        SeveralProcesses: a process group of several ranks exists, or `WORLD_SIZE` says so.
    """
    rank, size = _rank_and_size()
    if size <= 1:
        return
    if rank != 0:
        time.sleep(_RANK_0_FIRST_S)
        raise SystemExit(1)
    raise SeveralProcesses(
        f"a run was made in each of {size} processes, which would train {size} copies",
        expected="one process: runs are not built for several ranks yet",
        remedy="start the program with python instead of torchrun, or unset WORLD_SIZE for copies on purpose",
    )


def _rank_and_size() -> tuple[int, int]:
    """Return the rank of this process and how many there are, as the process group or the launcher says."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 0, 1


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
