"""Time per step and memory over a run, from the readings at sampled steps."""

from __future__ import annotations

from collections.abc import Sequence

from truestep.events import PaceRead
from truestep.findings import Summary
from truestep.report.page.pictures.curves import Chart, Series, chart

_APART = 9
"""Least number of steps between two readings for a mean time."""
_MIB = 2**20


def pace_charts(runs: Sequence[tuple[str, Summary]]) -> list[Chart]:
    """Return a chart of the time per step and one of the memory; none for short runs.

    Args:
        runs: each with its name; the name is empty for a single run.
    """
    times: list[Series] = []
    memory: list[Series] = []
    for name, summary in runs:
        pace = None if summary.timeline is None else summary.timeline.pace
        if pace is not None:
            times.append(Series(name or "time per step", _times(pace)))
            prefix = f"{name}: " if name else ""
            for label, sizes in (("process", pace.resident_bytes), ("accelerator, peak", pace.device_bytes)):
                if any(sizes):
                    points = [(step, size / _MIB) for step, size in zip(pace.steps, sizes, strict=True)]
                    memory.append(Series(prefix + label, points))
    found = []
    if any(len(one.points) > 1 for one in times):
        caption = "milliseconds, mean since the reading before, with data, evaluation and supervision"
        found.append(chart("time", "Time per step", caption, [one for one in times if one.points], from_zero=True))
    if memory:
        found.append(
            chart("memory", "Memory", "MiB at the end of a step: resident, or of tensors", memory, from_zero=True)
        )
    return found


def _times(pace: PaceRead) -> list[tuple[int, float]]:
    """Return steps and the mean milliseconds since the reading before, of readings that are far apart."""
    points = []
    step, seconds = pace.steps[0], pace.elapsed_s[0]
    for next_step, next_seconds in zip(pace.steps[1:], pace.elapsed_s[1:], strict=True):
        if next_step - step > _APART:
            points.append((next_step, 1000 * (next_seconds - seconds) / (next_step - step)))
            step, seconds = next_step, next_seconds
        elif step < _APART:  # the first steps are slow
            step, seconds = next_step, next_seconds
    return points
