"""Gradients and updates of the layers over the run, as tables of shaded cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truestep.events import LayersMeasured
from truestep.findings import Summary
from truestep.report.page.lines import number

_COLUMNS = 32
"""Steps that are shown."""
_DECADES = 8
"""Range of the shades: smaller values have the shade of the lowest one."""
_LEAST_DECADES = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of one weight at one step."""

    shade: int
    """Place of the value between the lowest and the highest of the table, from 0 to 100."""
    text: str
    state: str = ""
    """"zero" or "wrong" (NaN or infinity) for values without a shade, "absent" for a weight that was not stepped,
    "unread" for one that was not read."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One weight."""

    name: str
    short: str
    """The name without the parts that all weights share."""
    shape: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Weights over steps, for one quantity of one optimizer."""

    title: str
    caption: str
    steps: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    low: str
    high: str
    """Values of the lightest and of the darkest shade."""
    states: tuple[str, ...]
    """States that occur, for the legend."""


def heat_maps(summary: Summary) -> tuple[HeatMap, ...]:
    """Return the tables of each optimizer with weights that were measured at two steps."""
    timeline = summary.timeline
    if timeline is None:
        return ()
    found = []
    measured = {optimizer: readings for optimizer, readings in timeline.layers.items() if len(readings) > 1}
    for optimizer, readings in measured.items():
        built = timeline.objects.optimizers.get(optimizer)
        kind = "optimizer" if built is None else built.kind
        owner = f" of {kind} {optimizer}" if len(measured) > 1 else ""
        shown = _spread(readings)
        known = timeline.objects.parameters
        numbers = sorted({one for _, event in shown for one in event.parameters})
        labels = [
            (one, known[one].name, " x ".join(map(str, known[one].shape)))
            if one in known
            else (one, f"parameter {one}", "")
            for one in numbers
        ]
        for title, caption, values in (
            ("Gradients" + owner, "root mean square of the gradient of each weight", "gradients"),
            ("Updates" + owner, "norm of the update of each weight, divided by the norm of the weight", "updates"),
        ):
            found.append(_map(title, caption, shown, labels, values))
        if any(share > 0 for _, event in shown for share in event.idle):
            found.append(_units("Units without a gradient" + owner, shown, labels))
    return tuple(found)


def _spread(readings: Sequence[tuple[int, LayersMeasured]]) -> list[tuple[int, LayersMeasured]]:
    """Return the first and the last reading, and others in equal distances."""
    if len(readings) <= _COLUMNS:
        return list(readings)
    return [readings[round(place * (len(readings) - 1) / (_COLUMNS - 1))] for place in range(_COLUMNS)]


def _map(
    title: str,
    caption: str,
    readings: Sequence[tuple[int, LayersMeasured]],
    labels: Sequence[tuple[int, str, str]],
    field: str,
) -> HeatMap:
    columns = [dict(zip(event.parameters, getattr(event, field), strict=True)) for _, event in readings]
    usual = [math.log10(value) for one in columns for value in one.values() if 0 < value < math.inf]
    high = max(usual, default=0.0)
    low = max(min(usual, default=high), high - _DECADES)
    if high - low < _LEAST_DECADES:
        middle = (high + low) / 2
        low, high = middle - _LEAST_DECADES / 2, middle + _LEAST_DECADES / 2
    cells = {parameter: tuple(_cell(one.get(parameter), low, high) for one in columns) for parameter, _, _ in labels}
    return _table(title, caption, readings, labels, cells, (f"{10**low:.1g}", f"{10**high:.1g}"))


def _units(
    title: str, readings: Sequence[tuple[int, LayersMeasured]], labels: Sequence[tuple[int, str, str]]
) -> HeatMap:
    """Return the table of the shares of units with a gradient of zero."""
    columns = [dict(zip(event.parameters, event.idle, strict=False)) for _, event in readings]
    cells = {parameter: tuple(_share(one.get(parameter)) for one in columns) for parameter, _, _ in labels}
    caption = (
        "share of the rows of each weight with a gradient of zero: units that are dead for the whole batch, or rows "
        "of an embedding that the batch does not use"
    )
    return _table(title, caption, readings, labels, cells, ("0 %", "100 %"))


def _table(
    title: str,
    caption: str,
    readings: Sequence[tuple[int, LayersMeasured]],
    labels: Sequence[tuple[int, str, str]],
    cells: Mapping[int, tuple[Cell, ...]],
    ends: tuple[str, str],
) -> HeatMap:
    shared = _shared([name for _, name, _ in labels])
    rows = tuple(
        HeatRow(
            name,
            ".".join(name.split(".")[shared[0] : len(name.split(".")) - shared[1]]),
            shape,
            cells[parameter],
        )
        for parameter, name, shape in labels
    )
    states = {cell.state for row in rows for cell in row.cells}
    steps = tuple(f"{step:,}" for step, _ in readings)
    found = tuple(state for state in ("zero", "wrong", "absent", "unread") if state in states)
    return HeatMap(title, caption, steps, rows, *ends, found)


def _shared(names: Sequence[str]) -> tuple[int, int]:
    """Return the number of parts at the beginning and at the end of dotted names that all have; each keeps one.

    >>> _shared(["model.h.0.weight", "model.h.1.fc.weight"]), _shared(["model.weight"])
    ((2, 1), (0, 0))
    """
    split = [name.split(".") for name in names]
    most = min(map(len, split)) - 1
    if len(split) < 2:
        return 0, 0
    first = next((place for place in range(most) if len({parts[place] for parts in split}) > 1), most)
    last = next(
        (place for place in range(most - first) if len({parts[-1 - place] for parts in split}) > 1), most - first
    )
    return first, last


def _cell(value: float | None, low: float, high: float) -> Cell:
    if value is None:
        return Cell(0, "not stepped", "absent")
    if not math.isfinite(value):
        return Cell(0, str(value), "wrong")
    if value <= 0:
        return Cell(0, "0", "zero")
    share = (math.log10(value) - low) / (high - low)
    return Cell(round(100 * min(1.0, max(0.0, share))), number(value))


def _share(value: float | None) -> Cell:
    return Cell(0, "not read", "unread") if value is None else Cell(round(100 * value), f"{value:.0%}")
