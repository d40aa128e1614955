"""Control sources of randomness, one by one, so that `truestep repeat` can tell which of them a script depends on."""

from __future__ import annotations

import hashlib
import os
import random
import secrets
import sys
import time
from collections import Counter
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch

SOURCES = ("torch", "python", "numpy", "system", "clock", "threads", "kernels")
"""Sources that this change can control. The order of sets is controlled by an environment variable."""
_BEGAN = 1_700_000_000.0
_TICK_S = 1e-3
"""Start of the controlled clock, and the time between two of its calls."""


class Controlled(Change):
    """Chosen sources of randomness are the same in every run; a script's own seeds are left as they are.

    torch, python, numpy: the global generator starts from a fixed seed. system: `os.urandom`, from which generators
    without a seed get theirs, gives fixed bytes. clock: `time.time` counts its calls. threads: torch computes in one.
    kernels: torch takes deterministic operations where it has some.

    Args:
        sources: names of `SOURCES`.
    """

    name = "controlled"

    def __init__(self, sources: tuple[str, ...] = SOURCES) -> None:
        super().__init__()
        self._sources = frozenset(sources)

    def install(self, stack: ExitStack) -> None:
        import torch

        for name in ("system", "clock", "threads", "kernels", "torch", "python", "numpy"):
            if name in self._sources:
                getattr(self, f"_{name}")(stack, torch)
                self.applied += 1

    def _torch(self, stack: ExitStack, torch: Any) -> None:
        torch.manual_seed(0)

    def _python(self, stack: ExitStack, torch: Any) -> None:
        random.seed(0)

    def _numpy(self, stack: ExitStack, torch: Any) -> None:
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(0)

    def _system(self, stack: ExitStack, torch: Any) -> None:
        calls: Counter[str] = Counter()

        def urandom(size: int) -> bytes:
            frame: Any = sys._getframe(1)
            while frame.f_back is not None and frame.f_code.co_filename in (random.__file__, secrets.__file__):
                frame = frame.f_back
            place = f"{frame.f_code.co_name}:{frame.f_lineno}"  # calls from elsewhere do not move the others
            calls[place] += 1
            blocks = range(-(-size // 32))
            return b"".join(hashlib.sha256(f"{place} {calls[place]} {block}".encode()).digest() for block in blocks)[
                :size
            ]

        patch(stack, os, "urandom", urandom)
        patch(stack, random, "_urandom", urandom)
        patch(stack, torch, "seed", lambda: int(torch.manual_seed(0).initial_seed()))

    def _clock(self, stack: ExitStack, torch: Any) -> None:
        calls = 0

        def now() -> float:
            nonlocal calls
            calls += 1
            return _BEGAN + calls * _TICK_S

        patch(stack, time, "time", now)
        patch(stack, time, "time_ns", lambda: int(now() * 1e9))

    def _threads(self, stack: ExitStack, torch: Any) -> None:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)

    def _kernels(self, stack: ExitStack, torch: Any) -> None:
        on, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        stack.callback(torch.use_deterministic_algorithms, on, warn_only=warns)
        torch.use_deterministic_algorithms(True, warn_only=True)
