"""Agreement between ranks, without a wait in each step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch

_MOMENT = timedelta(seconds=2)
_EVERY_S = 0.5
_MOST_STEPS = 64


class Agreement:
    """The largest values of flags over ranks, about twice a second.

    Signals arrive at ranks at different times, and clocks differ; but all ranks must save and end after the same step.
    Flags are reduced while the next step is computed, which then has the result. The number of steps to the next
    exchange follows from the time since the last one, which is reduced with the flags: it is the same on all ranks.

    Args:
        group: a process group on the CPU.
    """

    def __init__(self, group: Any) -> None:
        self._group = group
        self._under_way: tuple[torch.Tensor, Any] | None = None
        self._steps, self._next, self._since = 0, 1, time.monotonic()

    def exchange(self, flags: Callable[[], Sequence[int]], count: int, *, at_once: bool) -> list[int]:
        """Return the agreed flags, or zeros; called by all ranks between two steps.

        Args:
            flags: returns those of this rank.
            count: their number.
            at_once: wait for the flags of this call.
        """
        before = self._finish()
        self._steps += 1
        if not any(before) and (at_once or self._steps >= self._next):
            self._begin(flags())
        after = self._finish() if at_once else []
        return before if any(before) else after or [0] * count

    def _begin(self, flags: Sequence[int]) -> None:
        now = time.monotonic()
        step_us = int(1e6 * (now - self._since) / self._steps)
        self._since, self._steps = now, 0
        values = torch.tensor([*flags, step_us], dtype=torch.int64)
        distributed: Any = torch.distributed
        work = distributed.all_reduce(values, distributed.ReduceOp.MAX, group=self._group, async_op=True)
        self._under_way = values, work

    def _finish(self) -> list[int]:
        """Wait for the flags under way and return them; [] if there are none."""
        if self._under_way is None:
            return []
        (values, work), self._under_way = self._under_way, None
        work.wait()
        *flags, step_us = values.tolist()
        self._next = max(1, min(_MOST_STEPS, int(1e6 * _EVERY_S / max(step_us, 1))))
        return [int(flag) for flag in flags]

    def drop(self) -> None:
        """Wait a moment for the flags under way; ranks that failed never send theirs."""
        if self._under_way is not None:
            with contextlib.suppress(RuntimeError):
                self._under_way[1].wait(_MOMENT)
            self._under_way = None
