"""Values read during the run, as lines of a chart.

The drawing of a chart is stretched to the width of the page, so all coordinates are shares from 0 to 1000, and texts
are not part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from truestep.accounts._account import place
from truestep.findings import Summary
from truestep.report.page.lines import number
from truestep.timeline import Curve, Timeline

_SIZE = 1000.0
_MOST = 240
"""Points of a line that are drawn."""
_DECADES = 100
"""Least ratio of the largest to the smallest value for a logarithmic axis."""
_EQUAL = 1e-4
"""Relative difference up to which values are drawn as a level line."""
_TITLES = {
    "loss": ("Loss", "the value that the backward pass began from"),
    "evaluation loss": ("Loss of the evaluations", "variables of the script, after each evaluation"),
    "figure": (
        "Figures of the evaluations",
        "variables and printed quotients of the script, after each evaluation; the first 64 values",
    ),
    "rate": ("Learning rate", "of each optimizer and parameter group"),
    "update": ("Size of the update", "norm of the update divided by the norm of the weights, median of the weights"),
    "mixture": (
        "Gradient stepped on",
        "norm of the gradient, divided by the norm that the last backward pass added",
    ),
    "window": (
        "Gradient of a window",
        "norm of the gradient, divided by the mean norm that each backward pass of the window added",
    ),
}

Points = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    label: str
    colour: int
    """Number of its colour, from 0."""
    points: tuple[tuple[int, float], ...]
    path: str
    """SVG path with the steps on a linear axis."""
    path_log: str
    """The same with the steps on a logarithmic axis."""
    dashed: bool = False
    dots: bool = False
    band: str = ""
    """SVG path around the lowest and highest values of several runs, with the steps on a linear axis."""
    band_log: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """A value of an axis, with its share of the axis from 0 to 100."""

    text: str
    share: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over the same steps."""

    subject: str
    title: str
    caption: str
    lines: tuple[Line, ...]
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    x_ticks_log: tuple[Tick, ...]
    log: bool
    """Whether the axis of the values is logarithmic."""
    low: float
    high: float
    """The values at the ends of the axis: their logarithms for a logarithmic one."""
    steps: int
    """The step at the right end."""
    marks: tuple[tuple[str, float, float], ...] = ()
    """Text and shares, linear and logarithmic, of steps with an event."""
    said: str = ""
    """The chart in words."""


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one line, before they are drawn.

    Attributes:
        label: name of the line.
        points: steps and values.
        dashed: True for a line that was planned, and not measured.
        dots: True for values without a line between them.
        low: lowest values of several runs with `points` as their mean, at the same steps; empty for one run.
        high: highest values.
    """

    label: str
    points: Points
    dashed: bool = False
    dots: bool = False
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def charts(runs: Sequence[tuple[str, Summary]]) -> list[Chart]:
    """Return the charts of one run, or of several in the same charts.

    Args:
        runs: each with its name; the name is empty for a single run.
    """
    found = []
    for subject, (title, caption) in _TITLES.items():
        series: list[Series] = []
        marks: list[tuple[str, int]] = []
        for name, summary in runs:
            if summary.timeline is not None:
                series += [Series(label, points) for label, points in _series(subject, name, summary.timeline)]
                if subject == "loss":
                    prefix = f"{name}: " if name else ""
                    marks += [(f"{prefix}loss is {value}", step) for step, _, value in summary.timeline.marks[:2]]
        if any(len(one.points) > 1 for one in series):
            found.append(chart(subject, title, caption, series, marks))
    return found


def _series(subject: str, name: str, timeline: Timeline) -> list[tuple[str, Points]]:
    """Return the lines of a run; parameter groups with equal rates are one line, and so are equal figures."""
    same: dict[tuple[int, tuple[tuple[int, float], ...]], str] = {}
    for curve, points in sorted(
        timeline.curves.items(), key=lambda item: (item[0].number, item[0].group, item[0].name)
    ):
        finite = tuple((step, value) for step, value in points if math.isfinite(value))
        if curve.subject == subject and finite:
            same.setdefault((curve.number, finite), _label(curve, timeline))
    prefix = f"{name}: " if name else ""
    if subject == "figure":  # a variable and the quotient that is stored in it
        sets = [set(points) for _, points in same]
        same = {
            (number, points): label
            for place, ((number, points), label) in enumerate(same.items())
            if not any(sets[place] < other for other in sets)
        }
    return [(prefix + label, points) for (_, points), label in same.items()]


def _label(curve: Curve, timeline: Timeline) -> str:
    if curve.subject == "loss":
        return place(curve.site) or "loss"
    if curve.name:
        return curve.name
    built = timeline.objects.optimizers.get(curve.number)
    kind = "optimizer" if built is None else built.kind
    several = len({known.number for known in timeline.curves if known.subject == curve.subject}) > 1
    label = f"{kind} {curve.number}" if several else kind
    return f"{label}, group {curve.group}" if curve.group else label


def chart(
    subject: str,
    title: str,
    caption: str,
    series: Sequence[Series],
    marks: Iterable[tuple[str, int]] = (),
    *,
    from_zero: bool = False,
) -> Chart:
    """Return a chart of lines over the same steps.

    Args:
        subject: key of the chart.
        title: title.
        caption: the meaning of the values.
        series: the lines; at least one has a value.
        marks: texts and steps of events.
        from_zero: True for a linear axis that begins with 0.
    """
    values = [value for one in series for value in (*(value for _, value in one.points), *one.low, *one.high)]
    least, most = min(values), max(values)
    least = min(0.0, least) if from_zero else least
    log = least > 0 and most / least >= _DECADES
    low, high, y_ticks = _axis(least, most, log)
    steps = max(max((step for one in series for step, _ in one.points), default=1), 1)
    return Chart(
        subject,
        title,
        caption,
        tuple(_line(one, position % 6, steps, log, low, high) for position, one in enumerate(series)),
        y_ticks,
        tuple(Tick(f"{step:,}", 100 * step / steps) for step in _round_steps(steps)),
        tuple(Tick(f"{step:,}", 100 * log_share(step, steps)) for step in _decades(steps)),
        log,
        low,
        high,
        steps,
        tuple((text, 100 * step / steps, 100 * log_share(step, steps)) for text, step in marks if step <= steps),
        _said(title, [(one.label, one.points) for one in series]),
    )


def _line(one: Series, colour: int, steps: int, log: bool, low: float, high: float) -> Line:
    def heights(values: Iterable[float]) -> list[float]:
        return [_SIZE * (1 - ((math.log10(value) if log else value) - low) / (high - low)) for value in values]

    drawn = thinned(one.points, _MOST)
    down = heights(value for _, value in drawn)
    linear = [_SIZE * step / steps for step, _ in drawn]
    wide = [_SIZE * log_share(step, steps) for step, _ in drawn]
    bands = ["", ""]
    if one.low:
        kept = {step for step, _ in drawn}
        edges = [
            (value, other)
            for (step, _), value, other in zip(one.points, one.low, one.high, strict=True)
            if step in kept
        ]
        around = heights([other for _, other in edges]) + heights([value for value, _ in edges])[::-1]
        bands = [_path(across + across[::-1], around) + "Z" for across in (linear, wide)]
    path, path_log = _path(linear, down), _path(wide, down)
    return Line(one.label, colour, tuple(drawn), path, path_log, one.dashed, one.dots, *bands)


def log_share(step: int, steps: int) -> float:
    """Return the place of a step on a logarithmic axis that begins with step 0, from 0 to 1.

    >>> log_share(0, 999), round(log_share(9, 999), 3)
    (0.0, 0.333)
    """
    return math.log10(step + 1) / math.log10(steps + 1)


def thinned(points: Points, most: int) -> list[tuple[int, float]]:
    """Return at most this number of points, with the least and the largest value of each part of the run.

    >>> thinned([(step, float(step % 5)) for step in range(100)], 8)
    [(0, 0.0), (4, 4.0), (25, 0.0), (29, 4.0), (50, 0.0), (54, 4.0), (75, 0.0), (79, 4.0)]
    """
    if len(points) <= most:
        return list(points)
    kept: list[tuple[int, float]] = []
    parts = most // 2
    for part in range(parts):
        here = points[len(points) * part // parts : len(points) * (part + 1) // parts]
        ends = {min(here, key=lambda point: point[1]), max(here, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept


def _path(across: Sequence[float], down: Sequence[float]) -> str:
    if len(across) == 1:
        return f"M{across[0]:.1f} {down[0]:.1f}h.1"
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across, down, strict=True))


def _axis(least: float, most: float, log: bool) -> tuple[float, float, tuple[Tick, ...]]:
    """Return the ends of an axis, and its ticks with their share from the top."""
    if log:
        first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
        powers = range(first, last + 1, max(1, round((last - first) / 5)))
        ticks = [Tick(_tick(10.0**power), 100 * (last - power) / (last - first)) for power in powers]
        return float(first), float(last), tuple(ticks)
    if most - least <= _EQUAL * max(abs(least), abs(most)):
        room = abs(least) or 1.0
        least, most = min(0.0, least - room / 4), max(0.0, most + room / 4)
    elif least > 0 and least < most / 2:
        least = 0.0
    unit = _unit((most - least) / 4)
    begin, end = math.floor(least / unit), math.ceil(most / unit)
    low, high = begin * unit, end * unit
    texts = [_tick(float(f"{position * unit:.6g}")) for position in range(begin, end + 1)]
    shares = [100 * (end - position) / (end - begin) for position in range(begin, end + 1)]
    return low, high, tuple(Tick(text, share) for text, share in zip(texts, shares, strict=True))


def _tick(value: float) -> str:
    """Return a value of an axis.

    >>> _tick(10_000.0), _tick(2.5), _tick(1e-05)
    ('10,000', '2.5', '1e-05')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.6g}"


def _unit(width: float) -> float:
    """Return the next of 1, 2, 2.5, 5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= width * 0.999)


def _round_steps(steps: int) -> list[int]:
    unit = max(1, int(_unit(steps / 4)))
    return [*range(0, steps - unit // 3, unit), steps]


def _decades(steps: int) -> list[int]:
    found = [0, *(10**power for power in range(9) if 10**power < steps / 2), steps]
    return found if len(found) < 7 else [found[0], *found[1:-1:2], found[-1]]


def _said(title: str, series: Sequence[tuple[str, Points]]) -> str:
    """Return the course of the lines in words."""
    parts = []
    for label, points in series:
        (first, begin), (last, end) = points[0], points[-1]
        extremes = min(value for _, value in points), max(value for _, value in points)
        between = f", between {number(extremes[0])} and {number(extremes[1])}" if extremes[0] != extremes[1] else ""
        parts.append(f"{label}: {number(begin)} at step {first:,}, {number(end)} at step {last:,}{between}")
    return f"{title}. {'; '.join(parts)}."
