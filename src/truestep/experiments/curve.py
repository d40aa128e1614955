"""A series of losses as a picture: of characters for a terminal, and as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the eight dots of a braille character, by row and column."""
_FIRST = 0x2800
_COLOURS = ("#c2410c", "#2b6cb0")
_LOGARITHMIC = 30
"""Positive losses whose ends are so many times apart are drawn on a logarithmic scale."""


def drawn(
    losses: Sequence[float], *, width: int = 80, height: int = 10, beside: Sequence[Sequence[float]] = ()
) -> list[str]:
    """Return the lines of a chart of characters.

    Args:
        losses: of steps, finite.
        width: columns of the whole.
        height: lines of the curve; one more for the steps.
        beside: losses of other charts that are to have the same scale.

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
    every = [*losses, *(loss for other in beside for loss in _binned(other, across))]
    scale, low, high = _scale(every)
    cells = [[0] * columns for _ in range(rows)]
    before = -1
    for x in range(across):
        value = scale(_at(losses, x / max(1, across - 1) * (len(losses) - 1)))
        y = round((high - value) / (high - low or 1.0) * (down - 1))
        for dot in range(min(y, before), max(y, before) + 1) if before >= 0 else (y,):
            cells[dot // 4][x // 2] |= _DOTS[dot % 4][x % 2]
        before = y
    lines = []
    for number, row in enumerate(cells):
        mark = {0: max(every), rows - 1: min(every)}.get(number)
        label = "" if mark is None else _short(mark)
        lines.append(f"{label:>6} {'┤' if label else '│'}{''.join(chr(_FIRST + cell) for cell in row)}")
    last = str(steps)
    lines.append(f"{'':7}└{'─' * columns}")
    lines.append(f"{'':8}step 1{last:>{columns - 6}}".rstrip())
    return lines


def svg(curves: Mapping[str, Sequence[float]], title: str) -> str:
    """Return a chart as a whole SVG document.

    Args:
        curves: losses of steps, finite, by what they are of.
        title: what stands above it.
    """
    every = [loss for losses in curves.values() for loss in losses]
    scale, low, high = _scale(every)
    width, height, left, top, right, bottom = 720, 360, 70, 50, 20, 40
    inner, tall = width - left - right, height - top - bottom
    last = max(map(len, curves.values()))
    text = 'font-family="sans-serif" font-size="13" fill="#444"'
    size = f'width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}>',
        f'<rect {size} fill="white"/>',
        f'<text x="{left}" y="26" {text} font-weight="bold">{_escaped(title)}</text>',
        f'<path d="M{left} {top}V{top + tall}H{left + inner}" fill="none" stroke="#bbb"/>',
        f'<text x="{left - 8}" y="{top + 5}" {text} text-anchor="end">{_short(max(every))}</text>',
        f'<text x="{left - 8}" y="{top + tall + 4}" {text} text-anchor="end">{_short(min(every))}</text>',
        f'<text x="{left}" y="{top + tall + 22}" {text}>step 1</text>',
        f'<text x="{left + inner}" y="{top + tall + 22}" {text} text-anchor="end">{last}</text>',
    ]
    for number, (name, losses) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(
            f"{left + inner * step / max(1, last - 1):.1f},"
            f"{top + tall * (high - scale(loss)) / (high - low or 1.0):.1f}"
            for step, loss in enumerate(losses)
        )
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(curves) > 1:
            place = f'x="{left + inner - 8}" y="{top + 16 + 18 * number}" text-anchor="end"'
            lines.append(f"<text {place} {text.replace('#444', colour)}>{_escaped(name)}</text>")
    return "\n".join([*lines, "</svg>", ""])


def _scale(losses: Sequence[float]) -> tuple[Callable[[float], float], float, float]:
    """Return what places a loss, and the lowest and highest place."""
    low, high = min(losses), max(losses)
    if low > 0 and high / low > _LOGARITHMIC:
        return math.log, math.log(low), math.log(high)
    return float, low, high


def _binned(losses: Sequence[float], most: int) -> Sequence[float]:
    """Return at most so many values: means over equal parts of the steps, so that no step is passed over."""
    if len(losses) <= most:
        return losses
    edges = [len(losses) * number // most for number in range(most + 1)]
    return [fmean(losses[start:end]) for start, end in pairwise(edges)]


def _at(losses: Sequence[float], place: float) -> float:
    """Return the loss at a place between two steps, on the line from one to the other."""
    number = min(int(place), len(losses) - 1)
    after = losses[min(number + 1, len(losses) - 1)]
    return losses[number] + (after - losses[number]) * (place - number)


def _short(value: float) -> str:
    """Return a number in at most six characters."""
    if value and (abs(value) >= 9999.5 or abs(value) < 0.001):
        return f"{value:.0e}"
    places = 3 if abs(value) < 0.1 else 2 if abs(value) < 100 else 0
    return f"{value:.{places}f}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
