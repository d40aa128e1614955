"""How fast a run is, how much memory it takes, and what part of the device's speed it uses.

The clock runs in training loops only. Nothing is counted per step but batches, and nothing waits for the device: over
many steps, the time between two looks is that of the device too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import torch


class Pace:
    """The clock of a run's training loops.

    Args:
        device: whose memory is told; for the cpu that of the process.
        peak: floating-point operations per second of the device in the run's precision; None where it is not known.
    """

    def __init__(self, device: torch.device, peak: float | None = None) -> None:
        self.device = device
        self.peak = peak
        self.flops_per_sample: float | None = None
        """Operations of a training step for one sample: forward and backward pass."""
        self.batches = 0
        """Bodies of training loops that ended."""
        self.samples = 0
        """Samples in them, where that is known."""
        self._seconds = 0.0
        self._entered: float | None = None

    def enter(self) -> None:
        """Begin to count time: a training loop is under way."""
        self._entered = time.perf_counter()

    def leave(self) -> None:
        """Stop to count time."""
        self._seconds, self._entered = self.seconds, None

    @property
    def seconds(self) -> float:
        """Time in training loops."""
        return self._seconds + (0.0 if self._entered is None else time.perf_counter() - self._entered)

    def look(self, step: int) -> Look:
        """Return what was measured since the beginning, to compare with a later one."""
        return Look(self, step)


class Look:
    """What a clock said at one moment.

    Args:
        pace: the clock.
        step: steps taken.
    """

    def __init__(self, pace: Pace, step: int) -> None:
        self._pace = pace
        self.step, self.samples, self.seconds = step, pace.samples, pace.seconds

    def since(self, before: Look) -> dict[str, float]:
        """Return speed and memory by name; what is not known is left out.

        Args:
            before: an earlier moment of the same run.

        Returns:
            `steps_per_s`, `samples_per_s`, `mfu` (0 to 1) and `memory_bytes` (the most so far).
        """
        pace, seconds = self._pace, self.seconds - before.seconds
        measured: dict[str, float] = {}
        if seconds > 0 and self.step > before.step:
            measured["steps_per_s"] = (self.step - before.step) / seconds
            samples = (self.samples - before.samples) / seconds
            if samples:
                measured["samples_per_s"] = samples
                if pace.peak and pace.flops_per_sample:
                    measured["mfu"] = samples * pace.flops_per_sample / pace.peak
        memory = most_memory(pace.device)
        if memory:
            measured["memory_bytes"] = memory
        return {name: float(f"{value:.6g}") for name, value in measured.items()}


def most_memory(device: torch.device) -> int:
    """Return the most bytes of tensors that a GPU held so far; on the cpu, the most that the process held; else 0."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type != "cpu":
        return 0
    try:
        import resource
    except ImportError:  # no such module on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def samples_in(batch: Any) -> int:
    """Return how many samples a batch has, which its first tensor says; a large number where none does.

    >>> samples_in((torch.ones(8, 3), torch.ones(8)))
    8
    """
    while isinstance(batch, tuple | list | Mapping) and len(batch):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
    return len(batch) if isinstance(batch, torch.Tensor) and batch.ndim else sys.maxsize
