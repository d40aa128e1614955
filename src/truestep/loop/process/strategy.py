"""Strategy of a run: the operations that differ between one process and several ranks.

`Run` calls them, and contains nothing else about ranks. There is only the strategy for a single process so far.
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
    """Operations of a run that depend on the number of processes."""

    rank: int
    world_size: int

    def prepare(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device and prepare it, in place: the keys of its `state_dict` stay the same."""

    def accumulating(self, *, closing: bool) -> AbstractContextManager[object]:
        """Return the context of a backward pass: gradients are synchronised only in the last one of a window."""


_RANK_0_FIRST_S = 5.0
"""Seconds that other ranks wait before they exit: a launcher kills all ranks when one fails, also rank 0."""


def check_one_process() -> None:
    """Raise an error if this is one of several processes: each would train a separate copy, on the same batches.

    Rank 0 raises the error; the other ranks print nothing and exit with code 1 a few seconds later.

    Raises:
        SeveralProcesses: the process group has several ranks, or `WORLD_SIZE` is larger than 1.
    """
    rank, size = _rank_and_size()
    if size <= 1:
        return
    if rank != 0:
        time.sleep(_RANK_0_FIRST_S)
        raise SystemExit(1)
    raise SeveralProcesses(
        f"a run was created in each of {size} processes, which would train {size} copies",
        expected="expected one process: runs do not support several ranks yet",
        remedy="start the program with python instead of torchrun, or unset WORLD_SIZE for intended copies",
    )


def _rank_and_size() -> tuple[int, int]:
    """Return the rank of this process and the number of processes, from the process group or the launcher."""
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
