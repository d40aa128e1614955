"""The report of `truestep tune`: text, JSON, and the list of all speed-ups."""

from __future__ import annotations

import math
from textwrap import indent, wrap

from truestep.experiments.changes.speedups import SPEEDUPS
from truestep.experiments.figures.speedup_statistics import MARGIN
from truestep.experiments.reports.text import WIDTH, rendered
from truestep.experiments.tune.tune import CONTROL
from truestep.experiments.tune.tuned import SpeedupRow, Tuned


def text(script: str, result: Tuned) -> str:
    """Return the report as text of 80 columns."""
    parts = [_head(script, result)]
    timed = [row for row in result.rows if row.judged is not None]
    if timed or result.control:
        parts.append(_table([*timed, *([result.control] if result.control else [])]))
    if result.together:
        parts.append("added to the best one:\n\n" + _table(result.together, first="added"))
    parts.append("\n".join(wrap(verdict(result), WIDTH, break_on_hyphens=False)))
    if written := lines(result):
        parts.append(written)
    parts += _asides(result)
    return "\n\n".join(part for part in parts if part)


def _head(script: str, result: Tuned) -> str:
    shares = ", ".join(
        f"{name} {seconds / result.step_s:.0%}"
        for name, seconds in sorted(result.phases.items(), key=lambda item: -item[1])
        if seconds / result.step_s >= 0.005
    )
    memory = f"; {result.peak_bytes / 2**20:,.0f} MiB at most" if result.peak_bytes else ""
    return "\n".join(
        wrap(
            f"{script} on {result.device}: {_time(result.step_s)} a step: {shares}{memory}",
            WIDTH,
            break_on_hyphens=False,
        )
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _table(rows: list[SpeedupRow], first: str = "") -> str:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in (first, "speed", "interval", "memory", "once", "losses", ""):
        left = title in ("", first)
        table.add_column(title, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    for row in rows:
        judged = row.judged
        assert judged is not None
        table.add_row(
            "script against itself" if row.names == (CONTROL,) else ", ".join(row.names),
            _ratio(judged.ratio),
            f"{_ratio(judged.low)[:-1]}-{_ratio(judged.high)}",
            "" if row.memory is None else f"{row.memory:.0%}",
            f"{row.once_s:.1f} s" if row.once_s >= 0.05 else "",
            _apart(row),
            row.status if row.names != (CONTROL,) else "even" if is_even(row) else "not even",
        )
    return rendered(table)


def is_even(control: SpeedupRow) -> bool:
    """Return True if the script, measured against itself, differs by less than a gain or loss that would count."""
    judged = control.judged
    return judged is not None and judged.high <= 1 + 2 * MARGIN and judged.low >= 1 / (1 + 2 * MARGIN)


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}x" if math.isfinite(ratio) else "?"


def _apart(row: SpeedupRow) -> str:
    if row.apart is None:
        return ""
    return "equal" if row.apart == 0 else f"{row.apart:.1g}"


def verdict(result: Tuned) -> str:
    """Return the conclusion, with a doubt about the machine."""
    return "; ".join(filter(None, (conclusion(result), doubt(result))))


def doubt(result: Tuned) -> str:
    """Return that the script against itself was not even; empty if it was."""
    if result.interrupted or result.control is None or is_even(result.control):
        return ""
    return "the script against itself was not even: the machine is busy, and small gains are lost in the noise"


def conclusion(result: Tuned) -> str:
    """Return the gain of the best speed-ups, or that there is none."""
    if result.interrupted:
        return "interrupted: these are the measurements up to then"
    if not result.best:
        return _none(result)
    row = result.whole or next(row for row in result.rows if row.names == result.best)
    judged = row.judged
    if judged is None:
        return f"together, {', '.join(result.best)} {row.status}: {row.note}"
    unsure = "" if row.status == "gain" else f" ({row.status}{': ' + row.note if row.note else ''})"
    verb = "give" if len(result.best) > 1 else "gives"
    return (
        f"{' and '.join(result.best)} {verb} {_ratio(judged.ratio)} "
        f"({_ratio(judged.low)} to {_ratio(judged.high)}){unsure}"
    )


def _none(result: Tuned) -> str:
    """Return the conclusion where nothing gains, with the number of speed-ups that were and were not tried."""
    tried, left = len(result.tried), len(result.left_out)
    budget = f"--budget {10 * math.ceil(result.enough_s / 10)} would be about enough"
    if left and not tried:
        return f"cannot tell: the budget was spent before any of {left} speed-ups was tried; {budget}"
    if not tried:
        return "no speed-up applies to this script"
    which = "the 1 speed-up" if tried == 1 else f"the {tried} speed-ups"
    verb = "makes" if tried == 1 else "make"
    said = f"{which} tried {verb} this script no faster beyond the noise"
    return f"{said}; {left} {'was' if left == 1 else 'were'} not tried: {budget}" if left else said


def lines(result: Tuned) -> str:
    names = list(result.best)
    names += [row.names[0] for row in result.rows if row.status == "saves memory"]
    names += [row.names[0] for row in result.rows if row.status == "gain" and SPEEDUPS[row.names[0]].on_request]
    blocks = [f"# {name}\n{SPEEDUPS[name].lines}" for name in names]
    return "write into the script:\n\n" + indent("\n".join(blocks), "    ") if blocks else ""


def _asides(result: Tuned) -> list[str]:
    said = [
        f"{', '.join(row.names)}: {row.note if row.status == 'losses differ' else f'{row.status}: {row.note}'}"
        for row in [*result.rows, *result.together]
        if row.note
    ]
    idle = [row.names[0] for row in result.rows if row.status == "does not apply"]
    if idle:
        said.append(f"does not apply here: {', '.join(idle)}")
    if result.elsewhere:
        said.append(f"not tried, since it matters on an accelerator only: {', '.join(result.elsewhere)}")
    if result.left_out:
        said.append(f"not tried, since the budget was spent: {', '.join(result.left_out)}")
    return (
        ["\n".join("\n".join(wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)) for line in said)]
        if said
        else []
    )


def document(script: str, result: Tuned) -> dict[str, object]:
    """Return the result as values for JSON."""

    def plain(row: SpeedupRow | None) -> dict[str, object] | None:
        if row is None:
            return None
        judged = row.judged
        sure = judged is not None and all(map(math.isfinite, (judged.ratio, judged.low, judged.high)))
        return {
            "names": list(row.names),
            "status": row.status,
            "speed": round(judged.ratio, 4) if judged and sure else None,
            "interval": [round(judged.low, 4), round(judged.high, 4)] if judged and sure else None,
            "memory": None if row.memory is None else round(row.memory, 4),
            "once_s": round(row.once_s, 3),
            "losses_apart": row.apart if row.apart is None or math.isfinite(row.apart) else str(row.apart),
            "note": row.note,
        }

    return {
        "script": script,
        "device": result.device,
        "step_s": result.step_s,
        "phases_s": result.phases,
        "peak_bytes": result.peak_bytes,
        "rows": [plain(row) for row in result.rows],
        "control": plain(result.control),
        "on_top": [plain(row) for row in result.together],
        "best": list(result.best),
        "together": plain(result.whole),
        "lines": {name: SPEEDUPS[name].lines for name in result.best},
        "accelerator_only": list(result.elsewhere),
        "left_out": result.left_out,
        "enough_s": result.enough_s,
        "interrupted": result.interrupted,
    }


def catalogue() -> str:
    """Return the table of all speed-ups."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for name, speedup in SPEEDUPS.items():
        if name != CONTROL:
            where = "accelerator" if speedup.accelerator else "on request" if speedup.on_request else ""
            table.add_row(name, speedup.summary, where)
    return rendered(table)
