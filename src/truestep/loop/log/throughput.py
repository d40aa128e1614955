"""Throughput of a run: speed, memory, and the used part of the device's peak speed.

The clock runs only in training loops. A step counts batches and samples, and never waits for the device: over many
steps, elapsed time on the host equals that of the device.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import torch


class Throughput:
    """The clock of a run's training loops.

    Args:
        device: device to report the memory of; for the CPU, that of the process.
        peak: peak floating-point operations per second of the device in the run's precision; None if unknown.
    """

    def __init__(self, device: torch.device, peak: float | None = None) -> None:
        self.device = device
        self.peak = peak
        self.flops_per_sample: float | None = None
        """Floating-point operations for one sample, forward and backward pass."""
        self.batches = 0
        """Number of finished batches in training loops."""
        self.samples = 0
        """Number of samples in them, if known."""
        self._seconds = 0.0
        self._entered: float | None = None

    def enter(self) -> None:
        """Start the clock, at the start of a training loop."""
        self._entered = time.perf_counter()

    def leave(self) -> None:
        """Stop the clock."""
        self._seconds, self._entered = self.seconds, None

    @property
    def seconds(self) -> float:
        """Seconds in training loops."""
        return self._seconds + (0.0 if self._entered is None else time.perf_counter() - self._entered)

    def measure(self, step: int) -> Measurement:
        """Return a reading of the clock, to compare with a later one."""
        return Measurement(self, step)


class Measurement:
    """A reading of the clock.

    Args:
        pace: the clock.
        step: number of steps.
    """

    def __init__(self, pace: Throughput, step: int) -> None:
        self._pace = pace
        self.step, self.samples, self.seconds = step, pace.samples, pace.seconds

    def since(self, before: Measurement) -> dict[str, float]:
        """Return speed and memory by name; unknown values are left out.

        Args:
            before: an earlier reading of the same run.

        Returns:
            `steps_per_s`, `samples_per_s`, `mfu` (model FLOPs utilisation, 0 to 1) and `memory_bytes` (peak so far).
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
    """Return the peak memory so far, in bytes: of tensors on a GPU, or of the process for the CPU; 0 for others."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type != "cpu":
        return 0
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def samples_in(batch: Any) -> int:
    """Return the number of samples in a batch, the length of its first tensor; `sys.maxsize` if there is none.

    >>> samples_in((torch.ones(8, 3), torch.ones(8)))
    8
    """
    while isinstance(batch, tuple | list | Mapping) and len(batch):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
    return len(batch) if isinstance(batch, torch.Tensor) and batch.ndim else sys.maxsize
