"""Places where checks run, and the host's waits for the device there."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch


class Skipped(Exception):
    """A check says nothing here; its text says why."""


@dataclass
class Place:
    """A device and its abilities.

    Attributes:
        device: where checks compute.
    """

    device: torch.device

    @property
    def kind(self) -> str:
        return self.device.type

    def needs(self, *kinds: str, what: str) -> None:
        """Skip the check on other kinds of device."""
        if self.kind not in kinds:
            raise Skipped(f"no {what} on {self.kind}")

    @contextlib.contextmanager
    def waits(self) -> Iterator[Callable[[], int]]:
        """Yield a function that returns the number of waits of the host for the device so far.

        On CUDA torch warns of each operation that waits, and calls of `torch.cuda.synchronize` are counted beside.
        """
        if self.kind == "standin":
            seen = self.module.seen
            before = len(seen.waits)
            yield lambda: len(seen.waits) - before
        elif self.kind == "cuda":
            calls: list[Any] = []
            synchronize = torch.cuda.synchronize

            def counted(*args: Any, **kwargs: Any) -> None:
                calls.append(args)
                synchronize(*args, **kwargs)

            torch.cuda.synchronize = counted
            torch.cuda.set_sync_debug_mode("warn")
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    yield lambda: len(calls) + sum("synchronizing CUDA operation" in str(one.message) for one in told)
            finally:
                torch.cuda.set_sync_debug_mode("default")
                torch.cuda.synchronize = synchronize
        else:
            raise Skipped(f"the host waits for nothing on {self.kind}")

    def given(self) -> Any:
        """Return how much the device was given to do: operators of the stand-in, allocations on CUDA."""
        if self.kind == "standin":
            return len(self.module.seen.operators)
        return torch.cuda.memory_stats()["allocation.all.allocated"] if self.kind == "cuda" else 0

    def settle(self) -> None:
        """Wait for the device."""
        if self.kind == "cuda":
            torch.cuda.synchronize()

    @property
    def module(self) -> Any:
        """Return torch's module of the device."""
        return torch.get_device_module(self.device)


def place(kind: str) -> Place:
    """Return a place, made so that the same program gives the same bits twice.

    Raises:
        Skipped: this machine lacks the device.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if kind == "standin":
        from accelerator import standin

        assert kind == standin.NAME
    elif kind == "cuda" and not torch.cuda.is_available():
        raise Skipped("this machine has no CUDA device that torch can use")
    if kind != "cuda":
        torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    return Place(torch.device(kind))
