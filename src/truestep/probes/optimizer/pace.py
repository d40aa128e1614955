"""The time and the memory of the process at sampled steps, for the pictures of the page."""

from __future__ import annotations

import os
import time
from array import array
from typing import Any

from truestep.events import PaceRead
from truestep.probes.context.scene import Scene

_STATM = "/proc/self/statm"
_MOST = 256
_SHORT_S = 10.0
"""Shorter runs have no event, so that their records compare."""

_FIELDS = 4
"""Numbers of a reading: step, seconds, resident bytes, bytes on the device."""


class Pace:
    """Reads a clock and two counters once in each sampled step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._begun = time.perf_counter()
        self._readings = array("d")  # one object, however many readings

    def read(self, weight: Any) -> None:
        """Keep the time and the memory so far.

        Args:
            weight: a parameter of the optimizer that stepped; None without one.
        """
        sampling, readings = self._scene.sampling, self._readings
        if readings and readings[-_FIELDS] == sampling.step:
            return
        spent = time.perf_counter() - self._begun - sampling.cost_s - sampling.checks.total_s()
        readings.extend((sampling.step, round(max(0.0, spent), 3), _resident(), self._on_device(weight)))
        if len(readings) >= _MOST * _FIELDS:
            starts = range(0, len(readings), 2 * _FIELDS)
            self._readings = array("d", [number for start in starts for number in readings[start : start + _FIELDS]])

    def event(self) -> PaceRead | None:
        """Return all readings; None for a short run."""
        steps, seconds, resident, device = (self._readings[field::_FIELDS] for field in range(_FIELDS))
        if len(steps) < 2 or seconds[-1] < _SHORT_S:
            return None
        return PaceRead(
            steps=tuple(map(int, steps)),
            elapsed_s=tuple(seconds),
            resident_bytes=tuple(map(int, resident)),
            device_bytes=tuple(map(int, device)),
        )

    def _on_device(self, weight: Any) -> int:
        """Return the peak of the memory of tensors on an accelerator; 0 without one. This waits for nothing."""
        kind = "cpu" if weight is None else weight.device.type
        most = getattr(getattr(self._scene.torch, kind, None), "max_memory_allocated", None)
        return 0 if kind == "cpu" or most is None else int(most(weight.device))


def _resident() -> int:
    """Return the resident bytes of the process; 0 where the system has no such file."""
    try:
        with open(_STATM, "rb", buffering=0) as file:
            return int(file.read(200).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
