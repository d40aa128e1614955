"""The report of `truestep bench-inference`: text, and values for JSON."""

from __future__ import annotations

import math
from textwrap import wrap

from truestep.experiments.figures.speedup_statistics import Judged
from truestep.experiments.inference.measured import InferenceMeasured, Setting, WayRow
from truestep.experiments.reports.text import WIDTH, rendered

SCHEMA = "truestep.bench-inference/1"


def text(found: InferenceMeasured) -> str:
    """Return the report as text of 80 columns."""
    parts = ["\n".join(_wrapped(line) for line in (f"{found.title}, on the CPU", *found.facts))]
    parts += [f"{heading(one)}:\n\n{_table(found, one)}" for one in found.settings]
    parts.append("\n".join(_wrapped(line, "  ") for line in verdicts(found)))
    if said := asides(found):
        parts.append("\n".join(_wrapped(line, "  ") for line in said))
    return "\n\n".join(part for part in parts if part)


def _wrapped(line: str, indent: str = "") -> str:
    return "\n".join(wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False))


def heading(one: Setting) -> str:
    """Return the size of the batch, the number of threads and the unit of a table."""
    return f"{_samples(one)}, {_threads(one)}; latency in {_unit(one)[0]}"


def _samples(one: Setting) -> str:
    return f"{one.batch} {'sample' if one.batch == 1 else 'samples'}"


def _threads(one: Setting) -> str:
    return f"{one.threads} {'thread' if one.threads == 1 else 'threads'}"


def _unit(one: Setting) -> tuple[str, float]:
    """Return the unit of a table and its size in seconds."""
    reference = one.rows[0].median if one.rows else None
    return ("us", 1e-6) if reference is not None and reference < 1e-3 else ("ms", 1e-3)


HEADS = ("", "median", "95 %", "99 %", "samples/s", "speed", "interval", "")


_LEAST = {"median": 7, "95 %": 7, "99 %": 7, "samples/s": 10, "speed": 6, "interval": 10}
"""Least widths: tables of several sizes have the same columns."""


def _table(found: InferenceMeasured, one: Setting) -> str:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for place, title in enumerate(HEADS):
        table.add_column(
            title,
            justify="left" if place in (0, len(HEADS) - 1) else "right",
            no_wrap=True,
            min_width=_LEAST.get(title, 0),
        )
    for row in one.rows:
        table.add_row(*cells(row, one))
    if one.control is not None:
        said = "even" if one.even else "not even"
        table.add_row(f"{found.reference} again", "", "", "", "", *_speed(one.control), said)
    return rendered(table)


def cells(row: WayRow, one: Setting) -> tuple[str, ...]:
    """Return the cells of a row."""
    _, unit = _unit(one)
    latencies = ("" if value is None else _number(value / unit) for value in (row.median, row.p95, row.p99))
    rate = (
        "" if row.per_second is None else f"{row.per_second:,.0f}" if row.per_second >= 100 else f"{row.per_second:.3g}"
    )
    status = "" if row.status == "reference" else row.status
    return (row.name, *latencies, rate, *(("", "") if row.judged is None else _speed(row.judged)), status)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _speed(judged: Judged) -> tuple[str, str]:
    return f"{_ratio(judged.ratio)}x", f"{_ratio(judged.low)}-{_ratio(judged.high)}"


def _ratio(ratio: float) -> str:
    return f"{ratio:.3g}" if 10 <= ratio < math.inf else f"{ratio:.2f}" if math.isfinite(ratio) else "?"


def verdicts(found: InferenceMeasured) -> list[str]:
    """Return a sentence for each setting, with the noise of the machine."""
    said = [_verdict(found, one) for one in found.settings]
    uneven = [one for one in found.settings if not one.even]
    if uneven:
        where = "" if len(uneven) == len(found.settings) else f" with {_and([_setting(one) for one in uneven])}"
        said.append(
            f"{found.reference} against itself was not even{where}: the machine is busy, and small gains are lost in "
            "the noise"
        )
    return said or [f"{found.reference} cannot be measured: {found.failed.get(found.reference, 'no time was left')}"]


def _verdict(found: InferenceMeasured, one: Setting) -> str:
    best = one.best
    if best is None or best.judged is None:
        said = f"nothing with equal outputs is faster than {found.reference} beyond the noise"
        if len(one.rows) == 1:
            said = "nothing to compare it with"
    else:
        said = (
            f"{best.name} is {_ratio(best.judged.ratio)}x as fast ({_ratio(best.judged.low)}x to "
            f"{_ratio(best.judged.high)}x)"
        )
    return f"{_setting(one)}: {said}"


def _setting(one: Setting) -> str:
    return f"{_samples(one)}, {_threads(one)}"


def asides(found: InferenceMeasured) -> list[str]:
    """Return lines about ways that differ, failed, or were left out."""
    said = []
    for name, relative in found.apart.items():
        if name in found.differs:
            said.append(f"{name} gives other outputs: {found.differs[name]}")
        elif relative is not None and relative > found.tolerance and found.stable:
            said.append(
                f"{name} gives other outputs: relative difference {relative:.2g}, tolerance {found.tolerance:.0e}"
            )
    faster = {row.name for one in found.settings for row in one.faster_with_other_outputs}
    quantised = sorted(name for name in faster if name.startswith("int8"))
    if quantised:
        said.append(
            f"{_and(quantised)} would be faster, with other outputs: measure the accuracy first, with `truestep export "
            "--quantise int8`"
        )
    if not found.stable:
        said.append(f"{found.reference} gives other outputs in each call: no outputs were compared")
    once = [
        f"{name} {seconds:.3g} s" for name, seconds in found.once.items() if seconds >= 1 and name not in found.failed
    ]
    if once:
        said.append(f"before the first output: {', '.join(once)}")
    said += [f"{name}: failed: {reason}" for name, reason in found.failed.items() if name != found.reference]
    if found.left_out:
        said.append(f"not measured, since the budget was spent: {', '.join(found.left_out)}; --budget raises it")
    return [*said, *found.notes]


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def document(found: InferenceMeasured) -> dict[str, object]:
    """Return the result as values for JSON; times are in seconds."""
    return {
        "schema": SCHEMA,
        "title": found.title,
        "facts": list(found.facts),
        "reference": found.reference,
        "tolerance": found.tolerance,
        "stable": found.stable,
        "settings": [_plain(one) for one in found.settings],
        "relative_difference": dict(found.apart),
        "other_outputs": dict(found.differs),
        "failed": dict(found.failed),
        "once_s": dict(found.once),
        "left_out": list(found.left_out),
        "notes": list(found.notes),
    }


def _plain(one: Setting) -> dict[str, object]:
    best = one.best
    return {
        "batch": one.batch,
        "threads": one.threads,
        "rows": [
            {
                "name": row.name,
                "status": row.status,
                "calls": row.calls,
                "median_s": row.median,
                "p95_s": row.p95,
                "p99_s": row.p99,
                "samples_per_second": row.per_second,
                **_judged(row.judged),
            }
            for row in one.rows
        ],
        "control": _judged(one.control),
        "even": one.even,
        "best": None if best is None else best.name,
    }


def _judged(judged: Judged | None) -> dict[str, object]:
    sure = judged is not None and all(map(math.isfinite, (judged.ratio, judged.low, judged.high)))
    return {
        "speed": round(judged.ratio, 4) if judged and sure else None,
        "interval": [round(judged.low, 4), round(judged.high, 4)] if judged and sure else None,
    }
