"""``truestep replay``: make the report on a run again from its record. Needs no torch."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from truestep.cli.shell import completion
from truestep.cli.shell.rule_options import Ignore, Select
from truestep.config import load_options
from truestep.findings import Summary
from truestep.report import write
from truestep.rules import Rule, all_rules, rule
from truestep.supervision import record as records
from truestep.supervision.children import with_children
from truestep.supervision.ranks import merge


def replay(
    record: Annotated[
        Path,
        typer.Argument(
            metavar="RECORD", help="Folder written by `truestep run --record`.", autocompletion=completion.records
        ),
    ],
    select: Select = None,
    ignore: Ignore = None,
    format: Annotated[
        Literal["text", "json", "sarif", "github"] | None,
        typer.Option(help="Format of the report.", show_default="text"),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the report to this file, not to standard output.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Report only if there are findings or errors.")] = False,
) -> None:
    """Report on a recorded run again, with the rules of the installed version."""
    options = load_options(Path.cwd(), select=select, ignore=ignore, format=format, output=output, quiet=quiet or None)
    ignored = {rule(id) for id in options.ignore}
    chosen = tuple(one for id in options.select if (one := rule(id)).in_runs) or tuple(all_rules().values())
    wrote = write(read(record, tuple(one for one in chosen if one not in ignored)), options, sys.stdout)
    if wrote and not quiet:
        print(f"truestep: {wrote}", file=sys.stderr)


def read(record: Path, rules: tuple[type[Rule], ...]) -> Summary:
    """Return the summary of a recorded run, with its ranks merged.

    Raises:
        BadRecord: the record is missing or cannot be read.
    """
    files = list(records.ranks(record)) if record.is_dir() else []
    if len(files) < 2:
        summary = _with_children(files[0] if files else record, rules)
        return replace(summary, record=str(record))
    numbers = [_rank(file) for file in files]
    summaries = {number: _with_children(file, rules) for number, file in zip(numbers, files, strict=True)}
    world_size = max(*(number + 1 for number in numbers), *(summary.ranks for summary in summaries.values()))
    return replace(merge(summaries, world_size), record=str(record))


def _rank(file: Path) -> int:
    return int(re.sub(r"\D", "", file.stem) or 0)


def _with_children(file: Path, rules: tuple[type[Rule], ...]) -> Summary:
    """Return the summary of one record, with the processes that it started."""
    own = records.read(file, select=rules)
    folders = records.children(file.parent, _rank(file))
    return with_children(own, [(None, read(folder, rules) if any(folder.iterdir()) else None) for folder in folders])
