"""``truestep runs``: list runs, or compare two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from truestep.cli.shell import completion
from truestep.errors import UsageError
from truestep.report.color import console as colored_console
from truestep.runs.compared import ComparedRuns, compared
from truestep.runs.described import DescribedRun, describe
from truestep.runs.folders import kind_of, runs_below

_STYLES = {"finished": "green", "running": "bold blue", "crashed": "bold red", "unfinished": "yellow"}
_NARROW = 30
"""Widest text of a setting beside another one."""
_LEAST = 20
"""Least width of the column with the folders."""


def runs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR]...",
            help="Folders to look in; two runs are compared.",
            autocompletion=completion.runs,
            show_default=".",
        ),
    ] = None,
    format: Annotated[Literal["text", "json"], typer.Option(help="A table, or one JSON document.")] = "text",
) -> None:
    """List the runs below a folder, or compare two runs.

    Runs are folders of truestep.Run and records of truestep run --record: time, revision, steps, last loss and metric,
    findings, and the state: finished, crashed, unfinished, running. Two folders of runs are compared: settings and
    results that differ.
    """
    places = folders or [Path()]
    for place in places:
        if not place.is_dir():
            raise UsageError(
                f"{place} is not a folder",
                expected="expected folders with runs, or two runs",
                remedy="name the folder that was passed as Run(out=...) or --record DIR",
            )
    if len(places) == 2 and all(map(kind_of, places)):
        one, other = map(describe, places)
        result = compared(one, other)
        print(_dumped(_comparison(result))) if format == "json" else _show_two(result, _console())
        return
    found = [describe(folder) for place in places for folder in runs_below(place)]
    if format == "json":
        print(_dumped([_document(run) for run in found]))
    elif found:
        _show(found, _console())
    else:
        print(f"no runs in {', '.join(map(str, places))}: neither folders of truestep.Run nor records of --record")


def _console() -> Console:
    console = colored_console()
    console.width = max(console.width, 80)
    return console


def _show(found: Sequence[DescribedRun], console: Console) -> None:
    """Print a table; a column that is empty for all runs is left out."""
    cells = {
        "run": [Text(str(run.path)) for run in found],
        "when": [Text(_when(run), "dim") for run in found],
        "revision": [Text(run.revision, "dim") for run in found],
        "steps": [Text("" if run.steps is None else f"{run.steps:,}") for run in found],
        "loss": [Text("" if run.loss is None else f"{run.loss:.4g}") for run in found],
        "metric": [Text("" if run.metric is None else f"{run.metric[0]} {run.metric[1]:.4g}") for run in found],
        "findings": [_findings(run) for run in found],
        "state": [Text(run.state, _STYLES.get(run.state, "")) for run in found],
    }
    kept = [name for name, column in cells.items() if any(cell.plain for cell in column)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in kept:
        right = name in ("steps", "loss", "findings")
        least = min(max(len(cell.plain) for cell in cells[name]), _LEAST) if name == "run" else None
        whole = name not in ("run", "metric")
        justify: Literal["left", "right"] = "right" if right else "left"
        table.add_column(name, justify=justify, no_wrap=whole, overflow="fold", min_width=least)
    for row in zip(*(cells[name] for name in kept), strict=True):
        table.add_row(*row)
    _print(table, console)
    for run in found:
        if run.problem:
            console.print(Text(f"{run.path} cannot be read: {run.problem}", style="yellow"), soft_wrap=True)


def _findings(run: DescribedRun) -> Text:
    if run.findings is None:
        return Text("")
    return Text(str(len(run.findings)), "red" if run.findings else "dim")


def _show_two(result: ComparedRuns, console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("", str(result.one.path), str(result.other.path)):
        table.add_column(name, overflow="fold", max_width=_NARROW)
    for name, of in (("when", _when), ("state", lambda run: run.state), ("steps", lambda run: _number(run.steps))):
        table.add_row(name, of(result.one), of(result.other))
    table.add_row()
    for name, both in result.settings.items():
        table.add_row(Text(name, "dim"), *both)
    if not result.settings:
        table.add_row(Text("the settings are equal", "dim"))
    table.add_row()
    for name, (before, after) in result.results.items():
        table.add_row(name, _number(before), _number(after))
    _print(table, console)
    for run, only in zip((result.one, result.other), result.findings, strict=True):
        if only:
            console.print(Text(f"\nfound in {run.path} only: {', '.join(only)}"), soft_wrap=True)


def _print(table: Table, console: Console) -> None:
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _when(run: DescribedRun) -> str:
    """Return the time, with the year if it is another one than now."""
    if run.when is None:
        return ""
    when, now = run.when.astimezone(), datetime.now().astimezone()
    return f"{when:%b %d %H:%M}" if when.year == now.year else f"{when:%Y-%m-%d}"


def _document(run: DescribedRun) -> dict[str, Any]:
    return {
        "path": str(run.path),
        "kind": run.kind,
        "state": run.state,
        "when": None if run.when is None else run.when.isoformat(timespec="seconds"),
        "revision": run.revision,
        "steps": run.steps,
        "results": dict(run.results),
        "best": run.best,
        "findings": None if run.findings is None else list(run.findings),
        "settings": dict(run.settings),
        "problem": run.problem,
    }


def _comparison(result: ComparedRuns) -> dict[str, Any]:
    return {
        "runs": [_document(result.one), _document(result.other)],
        "settings": {name: list(both) for name, both in result.settings.items()},
        "results": {name: list(both) for name, both in result.results.items()},
        "findings": [list(only) for only in result.findings],
    }


def _dumped(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
