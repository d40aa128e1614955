"""Agreement between ranks, without a wait in each step."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch

_MOMENT = timedelta(seconds=2)


class Agreement:
    """The largest values of flags over ranks, known one step later.

    Signals arrive at ranks at different times, and clocks differ; but all ranks must save and end after the same step.
    The flags of a step are reduced while the next step is computed.

    Args:
        group: a process group on the CPU.
    """

    def __init__(self, group: Any) -> None:
        self._group = group
        self._under_way: tuple[torch.Tensor, Any] | None = None

    def exchange(self, flags: Sequence[int]) -> list[int]:
        """Send the flags of this step, and return the agreed ones of the step before; zeros at the first call."""
        before = self.finish()
        values = torch.tensor(flags, dtype=torch.int64)
        distributed: Any = torch.distributed
        work = distributed.all_reduce(values, distributed.ReduceOp.MAX, group=self._group, async_op=True)
        self._under_way = values, work
        return before or [0] * len(flags)

    def drop(self) -> None:
        """Wait a moment for the flags under way; ranks that failed never send theirs."""
        if self._under_way is not None:
            with contextlib.suppress(RuntimeError):
                self._under_way[1].wait(_MOMENT)
            self._under_way = None

    def finish(self) -> list[int]:
        """Wait for the flags under way and return them; [] if there are none."""
        if self._under_way is None:
            return []
        (values, work), self._under_way = self._under_way, None
        work.wait()
        return [int(value) for value in values.tolist()]
