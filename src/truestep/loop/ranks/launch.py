"""The process group of a run: the one that the program made, or one made from the environment of torchrun."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any, NamedTuple

import torch

from truestep.errors import BadSettings, SeveralProcesses

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_RANK_0_FIRST_S = 5.0
"""Seconds that other ranks wait before they exit: a launcher kills all ranks when one fails, also rank 0."""


class Place(NamedTuple):
    """Place of this process among those of a run."""

    rank: int
    world_size: int
    local_rank: int


def place(strategy: str) -> Place | None:
    """Return the place of this process; None if it trains alone.

    Args:
        strategy: "auto", "ddp" or "fsdp".

    Raises:
        BadSettings: "ddp" or "fsdp" was given, and this process was not started by torchrun.
    """
    distributed: Any = torch.distributed
    local = int(os.environ.get("LOCAL_RANK", "0") or 0)
    if distributed.is_available() and distributed.is_initialized():
        found = Place(distributed.get_rank(), distributed.get_world_size(), local)
    else:
        try:
            found = Place(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")), local)
        except ValueError:
            found = Place(0, 1, local)
    if strategy != "auto" and not _is_launched():
        raise BadSettings(
            f'strategy is "{strategy}", and this process was not started as one of several',
            expected="expected a process group, or the environment of torchrun: " + ", ".join(_NEEDED),
            remedy="start the program with torchrun --nproc-per-node N, or leave strategy out for one process",
        )
    return found if found.world_size > 1 or strategy != "auto" else None


def _is_launched() -> bool:
    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return True
    return all(name in os.environ for name in _NEEDED)


def device_of(name: str, local_rank: int) -> str:
    """Return the name of the device of one rank: "cuda:1" for the second process of a machine with GPUs.

    Args:
        name: the setting.
        local_rank: number of this process on its machine.

    Raises:
        BadSettings: the machine has fewer GPUs than processes.
    """
    if name not in ("auto", "cuda") or not torch.cuda.is_available():
        return name
    count = torch.cuda.device_count()
    if local_rank >= count:
        raise BadSettings(
            f"process {local_rank} of this machine has no GPU: it has {count}",
            expected="expected at most one process for each GPU",
            remedy=f'start torchrun with --nproc-per-node {count}, or pass device="cpu"',
        )
    torch.cuda.set_device(local_rank)
    return f"cuda:{local_rank}"


def join(found: Place, device: torch.device, timeout_s: float) -> bool:
    """Make the process group if the program has not made one; return True if it was made here.

    Args:
        found: the place of this process.
        device: device of the tensors; NCCL for CUDA, gloo for others.
        timeout_s: time that ranks wait for one another.

    Raises:
        SeveralProcesses: the environment of the launcher is incomplete; rank 0 raises it, and the others exit with code
            1. Or ranks on several hosts do not reach each other.
    """
    distributed: Any = torch.distributed
    if distributed.is_initialized():
        return False
    if not _is_launched():
        if found.rank != 0:
            time.sleep(_RANK_0_FIRST_S)
            raise SystemExit(1)
        missing = [name for name in _NEEDED if name not in os.environ]
        raise SeveralProcesses(
            f"WORLD_SIZE is {found.world_size}, but the processes cannot find each other",
            expected=f"expected the environment of torchrun, got no {' and no '.join(missing)}",
            remedy="start the program with torchrun, or unset WORLD_SIZE for one process",
        )
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    own_device = device if device.type == "cuda" else None
    timeout = timedelta(seconds=timeout_s)
    store = _store_of_restart(found, timeout)
    own = {} if store is None else {"store": store, "rank": found.rank, "world_size": found.world_size}
    try:
        distributed.init_process_group(backend, timeout=timeout, device_id=own_device, **own)
    except RuntimeError as error:
        if not has_other_hosts():
            raise
        got = str(error).splitlines()[0]
        raise SeveralProcesses(
            "the ranks on several hosts do not reach each other",
            expected=f"expected a connection of rank {found.rank} to each other rank, got: {got}",
            remedy="set GLOO_SOCKET_IFNAME (NCCL_SOCKET_IFNAME with GPUs) to the interface between the hosts, such as "
            "eth0; for restarts of torchrun set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 on all hosts",
        ) from error
    return True


def has_other_hosts() -> bool:
    """Return True if torchrun has started ranks on other hosts too."""
    own, all_ranks = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    return own is not None and own != all_ranks


def _store_of_restart(found: Place, timeout: timedelta) -> Any:
    """Return the store of torchrun for this start of the processes; None if torch makes the right one.

    On one machine, torchrun keeps one store for all restarts, which still has the addresses of the ranks that were
    killed (torch 2.13): a restarted rank would connect to these.
    """
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
    is_kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if not is_kept or not count.isdigit() or os.environ.get("LOCAL_WORLD_SIZE") != str(found.world_size):
        return None
    distributed: Any = torch.distributed
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = distributed.TCPStore(address, port, found.world_size, is_master=False, timeout=timeout)
    return distributed.PrefixStore(f"truestep/start-{count}", store)
