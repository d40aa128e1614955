"""The strategy of a run, and actions of rank 0 that the others wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from truestep.loop.ranks.data_parallel import DataParallel
from truestep.loop.ranks.fully_sharded import FullySharded
from truestep.loop.ranks.launch import Place, join
from truestep.loop.ranks.strategy import SingleProcess, Strategy

T = TypeVar("T")


def started(strategy: str, here: Place | None, device: torch.device, seed: int, timeout_s: float) -> Strategy:
    """Return the strategy of a run, after its process group has been made.

    Args:
        strategy: "auto", "ddp" or "fsdp".
        here: the place of this process; None if it trains alone.
        device: of this process.
        seed: of the run.
        timeout_s: time that ranks wait for one another.
    """
    if here is None:
        return SingleProcess()
    made = join(here, device, timeout_s)
    kind = FullySharded if strategy == "fsdp" and here.world_size > 1 else DataParallel
    return kind(here, device, seed, timeout_s, owns_group=made)


def only_first(strategy: Strategy, action: Callable[[], T]) -> T | None:
    """Return the result of an action on rank 0, None on the others; if it fails, they exit with code 1."""
    result, failed = None, True
    try:
        if strategy.rank == 0:
            result = action()
        failed = False
    finally:
        failed = strategy.of_first(failed)
    if failed:
        raise SystemExit(1)
    return result
