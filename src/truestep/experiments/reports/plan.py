"""The report of `truestep plan`: text and JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.text import Text

from truestep.debugging._tables import table
from truestep.experiments.plan.fitting import AUTOCAST, RECOMPUTE, sentences, size
from truestep.experiments.plan.footprint import Footprint, Strategy, smallest
from truestep.experiments.plan.plan import Planned
from truestep.experiments.reports.text import WIDTH

PARTS = (
    ("parameters", "█", "blue"),
    ("optimizer", "▓", "magenta"),
    ("gradients", "▒", "yellow"),
    ("exchange", "▚", "cyan"),
    ("activations and temporary", "░", "green"),
)
"""Parts of a bar: name, character and colour."""
_NAME = 11


def text(found: Planned, title: str) -> RenderableType:
    """Return the report on a plan: parts and peak by strategy, their bars, the devices, the answer.

    Args:
        found: the plan.
        title: the script or factory.
    """
    parts: list[RenderableType] = [*_head(found, title), "", _table(found), "", *_bars(found), "", _devices(found), ""]
    for sentence in sentences(found):
        lines = wrap(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        parts += [Text(line) for line in lines]
    return Group(*parts)


def name_of(row: Footprint) -> str:
    """Return the name of a strategy with its number of devices."""
    return f"{row.strategy} on {row.devices}" if row.strategy is Strategy.FSDP else str(row.strategy)


def _head(found: Planned, title: str) -> Iterator[Text]:
    count = sum(count for count, _ in found.types.values())
    types = " and ".join(found.types) or "no"
    frozen = count - found.trained
    still = f", {_count(frozen)} of them frozen" if frozen else ""
    what = f"{_count(count)} parameters in {types}{still}, {' and '.join(found.optimizers)}"
    yield Text.assemble(("plan: ", "bold"), f"{title}, {what}")
    changed = {RECOMPUTE: "recomputed blocks", AUTOCAST: "bf16 autocast"}
    with_ = [changed.get(name, name) for name, applied in found.changes.items() if applied]
    how = f"measured in step {found.step} on {found.measured_on}" if found.measured_on else "computed from shapes"
    line = " with ".join([how, *([" and ".join(with_)] if with_ else [])])
    line += "; sizes are per device, with this batch on each"
    for part in wrap(line, WIDTH):
        yield Text(part, style="dim")


def _count(number: int) -> str:
    """Return a number of parameters in three digits.

    >>> [_count(number) for number in (812, 4_810, 124_439_808, 7_000_000_000)]
    ['812', '4,810', '124 million', '7 billion']
    """
    for unit, of in (("billion", 1e9), ("million", 1e6)):
        if number >= of:
            return f"{number / of:.3g} {unit}"
    return f"{number:,}"


def _table(found: Planned) -> RenderableType:
    rows: list[Sequence[str | Text]] = []
    for row in found.rows:
        sizes = [row.parameters, row.gradients, row.optimizer, row.activations]
        exchange = size(row.exchange) if row.exchange else "-"
        rows.append([name_of(row), *map(size, sizes), exchange, Text(size(row.peak), style="bold")])
    titles = ["parameters", "gradients", "optimizer", "activations", "exchange", "peak"]
    columns = [("", _NAME), *((title, max(9, len(title))) for title in titles)]
    made = table(columns, rows, WIDTH)
    made.columns[0].justify = "left"
    return made


def _bars(found: Planned) -> Iterator[Text]:
    """Yield the parts of each peak as a bar, and their characters below."""
    most = max(row.peak for row in found.rows) or 1
    room = WIDTH - _NAME - 1
    for row in found.rows:
        line = Text(f"{name_of(row):<{_NAME}} ")
        end = held = 0
        for (_, character, colour), amount in zip(PARTS, _at_peak(row), strict=True):
            held += amount
            until = round(room * held / most)
            line.append(character * (until - end), style=colour)
            end = until
        yield line
    names = [Text.assemble((character, colour), f" {name}") for name, character, colour in PARTS]
    yield Text(" ").join(names)


def _at_peak(row: Footprint) -> tuple[int, ...]:
    """Return the parts of the peak, in the order of `PARTS`."""
    gradients, rest = row.at_peak
    exchange = row.peak - row.parameters - row.optimizer - gradients - rest
    return row.parameters, row.optimizer, gradients, exchange, rest


def _devices(found: Planned) -> RenderableType:
    rows: list[Sequence[str | Text]] = []
    for name, memory in found.devices.items():
        cells = [_used(row.peak / memory) for row in found.rows]
        count = smallest(found.needs, memory)
        rows.append([name, *cells, "none" if count is None else f"{count}"])
        if all(row.peak <= memory for row in found.rows):
            break  # and on larger ones
    titles = [name_of(row) for row in found.rows]
    columns = [("device", 0), *((title, max(7, len(title))) for title in titles), ("FSDP2 from", 10)]
    return table(columns, rows, WIDTH)


def _used(share: float) -> Text:
    if share > 1:
        return Text("no", style="red")
    return Text("<1%" if share < 0.01 else f"{share:.0%}", style="green")


def document(found: Planned) -> dict[str, object]:
    """Return the plan as values for JSON; sizes in bytes."""
    needs = dataclasses.asdict(found.needs)
    del needs["passes"], needs["updates"]
    return {
        "sentences": sentences(found),
        "needs": needs,
        "parameters": {name: {"count": count, "bytes": held} for name, (count, held) in found.types.items()},
        "trained": found.trained,
        "models": list(found.models),
        "optimizers": list(found.optimizers),
        "blocks": {"count": found.blocks[0], "class": found.blocks[1]},
        "measured_on": found.measured_on or None,
        "step": found.step,
        "changes": dict(found.changes),
        "strategies": [
            dataclasses.asdict(row) | {"at_peak": dict(zip([p[0] for p in PARTS], _at_peak(row), strict=True))}
            for row in found.rows
        ],
        "devices": [
            {
                "name": name,
                "bytes": memory,
                "fits": [name_of(row) for row in found.rows if row.peak <= memory],
                "fsdp_from": smallest(found.needs, memory),
            }
            for name, memory in found.devices.items()
        ],
        "seconds": round(found.outcome.seconds, 3),
    }
