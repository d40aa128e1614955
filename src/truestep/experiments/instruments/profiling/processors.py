"""Time that the threads of this process spent waiting for a busy processor. Linux only."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path


def waits() -> dict[str, tuple[int, int]]:
    """Return the nanoseconds for which each thread ran, and waited for a processor; {} on other systems."""
    found = {}
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError):
            ran, waited_ns, _ = map(int, path.read_text(encoding="ascii").split())
            found[path.parent.name] = (ran, waited_ns)
    return found


def waited(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> float:
    """Return the fraction of thread time between two readings that was spent waiting.

    >>> waited({"1": (0, 0)}, {"1": (75, 25), "2": (0, 0)})
    0.25
    """
    ran = sum(now[0] - before.get(thread, (0, 0))[0] for thread, now in after.items())
    idle = sum(now[1] - before.get(thread, (0, 0))[1] for thread, now in after.items())
    return idle / (ran + idle) if ran + idle > 0 else 0.0
