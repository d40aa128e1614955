"""Latency of an export before and after quantisation: both take turns in blocks of calls."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from truestep.export.calls import Call
from truestep.export.formats import FILES, Loaded, Source, format_of

_TURNS = 20
_FEWEST_TURNS = 3
_BUDGET_S = 5.0
_BLOCK_S = 0.005


def speeds(
    path: Path, to: str, calls: Sequence[Call], source: Callable[[], Source]
) -> tuple[list[dict[str, Any]], int]:
    """Return the latencies by size of the batch, and the size of the export before, which is written beside it.

    Args:
        path: the quantised export.
        to: its format.
        calls: calls with real inputs; one sample and the largest batch are timed.
        source: returns the model before.
    """
    writer = format_of(to)
    largest = max(calls, key=lambda call: call.size)
    timed = []
    with tempfile.TemporaryDirectory(prefix="truestep-export-") as place:
        plain = Path(place, FILES[to])
        writer.write(source(), plain)
        before, after = writer.load(plain)[0], writer.load(path)[0]
        for batch in dict.fromkeys((1, largest.size)):
            call = largest.rows(batch)
            try:
                first, second = _turns(before, after, call)
            except Exception:  # runtimes raise many types for one sample, which a graph can refuse
                continue
            timed.append({"batch": batch, "before_s": first, "after_s": second})
        return timed, size(Path(place), FILES[to])


def size(folder: Path, name: str) -> int:
    """Return the bytes of a file, with those of the weights beside it."""
    return sum(path.stat().st_size for path in (folder / name, folder / f"{name}.data") if path.exists())


def _turns(before: Loaded, after: Loaded, call: Call) -> tuple[float, float]:
    """Return the median latencies of two exports, in seconds."""
    ways = (before, after)
    pilots = [min(_block(way, call, 3)) for way in ways]
    counts = [max(1, min(200, round(_BLOCK_S / max(pilot, 1e-7)))) for pilot in pilots]
    found: list[list[float]] = [[], []]
    ends = time.monotonic() + _BUDGET_S
    for turn in range(_TURNS):
        if turn >= _FEWEST_TURNS and time.monotonic() > ends:
            break
        for place in (0, 1) if turn % 2 == 0 else (1, 0):
            found[place].append(median(_block(ways[place], call, counts[place])))
    return median(found[0]), median(found[1])


def _block(way: Loaded, call: Call, count: int) -> list[float]:
    seconds = []
    with torch.no_grad():
        way(call.args, call.kwargs)
        for _ in range(count):
            begun = time.perf_counter()
            way(call.args, call.kwargs)
            seconds.append(time.perf_counter() - begun)
    return seconds
