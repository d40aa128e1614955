"""Draw series of losses as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from truestep.experiments.reports.curve import axis, short

_COLOURS = ("#c2410c", "#2b6cb0", "#2f855a", "#6b46c1")
_FONT = "DejaVu Sans, Verdana, Arial, sans-serif"


def mean_and_band(curves: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float]]:
    """Return the mean, lowest and highest value per step of several series, up to the end of the shortest.

    >>> mean_and_band([[1.0, 2.0], [3.0, 4.0, 5.0]])
    ([2.0, 3.0], [1.0, 2.0], [3.0, 4.0])
    """
    steps = list(zip(*curves, strict=False))
    return [fmean(step) for step in steps], [min(step) for step in steps], [max(step) for step in steps]


def svg(curves: Mapping[str, Sequence[Sequence[float]]], title: str, *, ends: tuple[str, str] | None = None) -> str:
    """Return a chart as a whole SVG document: for each name, the mean of its series and the band of their values.

    The scale is the range of the means; values outside are clipped.

    Args:
        curves: series of finite losses per step, by name.
        title: title above the chart.
        ends: labels below the first and the last value; None for the numbers of the steps.
    """
    drawn = {name: tuple(_thinned(values) for values in mean_and_band(series)) for name, series in curves.items()}
    every = [loss for mean, _, _ in drawn.values() for _, loss in mean]
    scale, low, high = axis(every)
    last = max(step for bands in drawn.values() for step, _ in bands[0])
    width, height, left, top, right, bottom = 720, 380, 70, 56, 20, 40
    begins, over = ends or ("step 1", str(last))
    inner, tall = width - left - right, height - top - bottom
    text = f'font-family="{_FONT}" font-size="13" fill="#444"'
    size = f'width="{width}" height="{height}"'

    def points(values: Sequence[tuple[int, float]]) -> str:
        return " ".join(
            f"{left + inner * (step - 1) / max(1, last - 1):.1f},"
            f"{top + tall * (high - scale(min(max(loss, min(every)), max(every)))) / (high - low or 1.0):.1f}"
            for step, loss in values
        )

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}>',
        f'<rect {size} fill="white"/>',
        f'<text x="{left}" y="26" {text} font-weight="bold">{_escaped(title)}</text>',
        f'<path d="M{left} {top}V{top + tall}H{left + inner}" fill="none" stroke="#bbb"/>',
        f'<text x="{left - 8}" y="{top + 5}" {text} text-anchor="end">{short(max(every))}</text>',
        f'<text x="{left - 8}" y="{top + tall + 4}" {text} text-anchor="end">{short(min(every))}</text>',
        f'<text x="{left}" y="{top + tall + 22}" {text}>{begins}</text>',
        f'<text x="{left + inner}" y="{top + tall + 22}" {text} text-anchor="end">{over}</text>',
    ]
    for number, (name, (mean, lowest, highest)) in enumerate(drawn.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        if lowest != highest:
            around = f"{points(lowest)} {points(highest[::-1])}"
            lines.append(f'<polygon points="{around}" fill="{colour}" fill-opacity="0.15"/>')
        lines.append(f'<polyline points="{points(mean)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(drawn) > 1:
            place = f'x="{left + inner * number / len(drawn):.0f}" y="{top - 2}"'
            lines.append(f"<text {place} {text.replace('#444', colour)}>{_escaped(name)}</text>")
    return "\n".join([*lines, "</svg>", ""])


_MOST = 650
"""Most points of a curve: about one per pixel."""


def _thinned(values: Sequence[float]) -> list[tuple[int, float]]:
    """Return at most `_MOST` points: means over equal parts of the steps, each placed at the middle of its part."""
    if len(values) <= _MOST:
        return list(enumerate(values, start=1))
    edges = [len(values) * number // _MOST for number in range(_MOST + 1)]
    found = [(1 + (start + end) // 2, fmean(values[start:end])) for start, end in pairwise(edges)]
    return [(1, found[0][1]), *found[1:-1], (len(values), found[-1][1])]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
