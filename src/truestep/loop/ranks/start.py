"""The strategy of a run, and actions of rank 0 that the others wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch

from truestep.loop.ranks.data_parallel import DataParallel
from truestep.loop.ranks.fully_sharded import FullySharded
from truestep.loop.ranks.launch import Place, join
from truestep.loop.ranks.policies import Policies
from truestep.loop.ranks.strategy import SingleProcess, Strategy

if TYPE_CHECKING:
    from truestep.loop.settings.settings import Settings

T = TypeVar("T")


def started(settings: Settings, here: Place | None, device: torch.device) -> Strategy:
    """Return the strategy of a run, after its process group has been made.

    Args:
        settings: of the run.
        here: the place of this process; None if it trains alone.
        device: of this process.
    """
    if here is None:
        return SingleProcess()
    timeout_s = settings.rank_timeout
    made = join(here, device, timeout_s)
    policies = Policies(settings.param_dtype, settings.reduce_dtype, settings.cpu_offload)
    if settings.strategy == "fsdp" and (here.world_size > 1 or policies != Policies()):
        return FullySharded(here, device, settings.seed, timeout_s, owns_group=made, policies=policies)
    return DataParallel(here, device, settings.seed, timeout_s, owns_group=made)


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
