"""Draw a series of losses with characters, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the eight dots of a Braille character, by row and column."""
_FIRST = 0x2800
_LOGARITHMIC = 30
"""Ratio of highest to lowest loss above which the scale is logarithmic, if all losses are positive."""


def drawn(
    losses: Sequence[float],
    *,
    width: int = 80,
    height: int = 10,
    beside: Sequence[Sequence[float]] = (),
    band: tuple[Sequence[float], Sequence[float]] | None = None,
) -> list[str]:
    """Return the lines of a chart.

    Args:
        losses: finite losses of the steps.
        width: width of the chart in columns.
        height: number of lines of the curve; the axis and its labels take two more.
        beside: losses of other charts, to give all of them the same scale.
        band: lowest and highest value per step of several curves with `losses` as their mean; drawn as dots, and
            clipped to the range of the losses.

    >>> print("\\n".join(drawn([4.0, 3.0, 2.0, 1.0], width=24, height=2)))
      4.00 ┤⠉⠙⠒⠲⠤⠤⣄⣀⡀⠀⠀⠀⠀⠀⠀⠀
      1.00 ┤⠀⠀⠀⠀⠀⠀⠀⠀⠉⠉⠓⠒⠲⠤⢤⣀
           └────────────────
            step 1         4
    """
    columns, rows = max(8, width - 8), height
    across, down = 2 * columns, 4 * rows
    steps = len(losses)
    losses = _binned(losses, across)
    edges = [_binned(edge, across) for edge in band or ()]
    every = [*losses, *(loss for other in beside for loss in _binned(other, across))]
    scale, low, high = axis(every)
    cells = [[0] * columns for _ in range(rows)]

    def place(values: Sequence[float], x: int) -> int:
        value = scale(max(_at(values, x / max(1, across - 1) * (len(values) - 1)), min(every)))
        return min(max(round((high - value) / (high - low or 1.0) * (down - 1)), 0), down - 1)

    before = -1
    for x in range(across):
        y = place(losses, x)
        if edges and x % 2 == 0:
            for dot in range(place(edges[1], x), place(edges[0], x) + 1, 2):
                cells[dot // 4][x // 2] |= _DOTS[dot % 4][x % 2]
        for dot in range(min(y, before), max(y, before) + 1) if before >= 0 else (y,):
            cells[dot // 4][x // 2] |= _DOTS[dot % 4][x % 2]
        before = y
    lines = []
    for number, row in enumerate(cells):
        mark = {0: max(every), rows - 1: min(every)}.get(number)
        label = "" if mark is None else short(mark)
        lines.append(f"{label:>6} {'┤' if label else '│'}{''.join(chr(_FIRST + cell) for cell in row)}")
    last = str(steps)
    lines.append(f"{'':7}└{'─' * columns}")
    lines.append(f"{'':8}step 1{last:>{columns - 6}}".rstrip())
    return lines


def axis(losses: Sequence[float]) -> tuple[Callable[[float], float], float, float]:
    """Return the function that scales a loss, and the lowest and highest scaled value."""
    low, high = min(losses), max(losses)
    if low > 0 and high / low > _LOGARITHMIC:
        return math.log, math.log(low), math.log(high)
    return float, low, high


def _binned(losses: Sequence[float], most: int) -> Sequence[float]:
    """Return at most `most` values: means over equal parts of the steps, so that every step counts."""
    if len(losses) <= most:
        return losses
    edges = [len(losses) * number // most for number in range(most + 1)]
    return [fmean(losses[start:end]) for start, end in pairwise(edges)]


def _at(losses: Sequence[float], place: float) -> float:
    """Return the loss at a place between two steps, by linear interpolation."""
    number = min(int(place), len(losses) - 1)
    after = losses[min(number + 1, len(losses) - 1)]
    return losses[number] + (after - losses[number]) * (place - number)


def short(value: float) -> str:
    """Return a number in at most six characters."""
    if value and (abs(value) >= 9999.5 or abs(value) < 0.001):
        return f"{value:.0e}"
    places = 3 if abs(value) < 0.1 else 2 if abs(value) < 100 else 0
    return f"{value:.{places}f}"
