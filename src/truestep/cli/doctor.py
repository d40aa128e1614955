"""``truestep doctor``: show this machine's setup for training, with advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from truestep.doctor import Group, Level, SheetLine, advise, document, examine, sheet, summary
from truestep.report.color import console as colored_console
from truestep.report.excerpt import wrap

_STYLES = {Level.PROBLEM: "bold red", Level.WARNING: "bold yellow", Level.HINT: "bold cyan"}
_WIDEST = 100
_MARGIN = 17
"""Columns before the values; names of variables can be longer."""


def doctor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for runs.")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Show this machine's setup for training, with advice on how to improve it.

    Exits with 1 if training does not work here.
    """
    try:
        facts = examine(folder)
    except KeyboardInterrupt:
        return 130
    advice = advise(facts)
    ready, sentence = summary(facts, advice)
    if as_json:
        print(json.dumps(document(facts, advice), indent=2, ensure_ascii=False))
    else:
        show(sheet(facts, advice), ready, sentence, colored_console())
    return 0 if ready else 1


def show(groups: list[Group], ready: bool, sentence: str, console: Console) -> None:
    """Print the sheet, and the line that summarizes it."""
    width = min(console.width, _WIDEST)
    for group in groups:
        _print(console, (group.title, "bold blue"))
        column = max(_MARGIN, *(len(line.what) + 4 for line in group.lines))
        for line in group.lines:
            _line(line, column, width, console)
        console.print()
    first, *rest = wrap(sentence, width, hang=2)
    head, _, tail = first.partition(":")
    _print(console, (f"{head}:", "bold green" if ready else "bold red"), tail)
    for row in rest:
        _print(console, "  ", row)


def _line(line: SheetLine, column: int, width: int, console: Console) -> None:
    """Print a line: its value starts at `column`, its advice at the margin."""
    margin = " " * _MARGIN
    style = "dim" if line.missing else ""
    head = f"  {line.what}  ".ljust(column)
    first, *rest = [row for part in line.value.split("\n") for row in wrap(part, width - column) or [""]]
    _print(console, head, (first, style))
    for row in rest:
        _print(console, " " * column, (row, style))
    _command(line.command, width, console)
    for advice in line.advice:
        level = f"{advice.level.value}:"
        first, *rest = wrap(f"{level} {advice.text}", width - _MARGIN)
        _print(console, margin, (level, _STYLES[advice.level]), first.removeprefix(level))
        for row in rest:
            _print(console, margin, row)
        _command(advice.command, width, console)


def _command(command: str, width: int, console: Console) -> None:
    """Print a command on a separate line, further left if it is long, so that it can be copied whole."""
    if command:
        margin = _MARGIN if _MARGIN + 2 + len(command) <= width else 4
        _print(console, " " * margin, ("$ ", "dim"), (command, "bold"))


def _print(console: Console, *pieces: str | tuple[str, str]) -> None:
    console.print(Text.assemble(*pieces), soft_wrap=True)
