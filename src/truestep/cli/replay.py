"""``truestep replay``: the report on a run, made again from its record. Needs no torch."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from truestep.config import load_options
from truestep.findings import Summary
from truestep.report import write
from truestep.rules import Rule, all_rules, rule
from truestep.watch import record as records
from truestep.watch.ranks import merge


def replay(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A folder written by run --record.")],
    select: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Only these rules.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Not these rules.")] = None,
    format: Annotated[
        Literal["text", "json", "sarif", "github"] | None,
        typer.Option(help="Form of the report.", show_default="text"),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File for the report instead of the output stream.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Report only when there is something to report.")] = False,
) -> None:
    """Report again on a recorded run, with the rules of today."""
    options = load_options(Path.cwd(), select=select, ignore=ignore, format=format, output=output, quiet=quiet or None)
    ignored = {rule(id) for id in options.ignore}
    chosen = tuple(rule(id) for id in options.select) or tuple(all_rules().values())
    wrote = write(read(record, tuple(one for one in chosen if one not in ignored)), options, sys.stdout)
    if wrote and not quiet:
        print(f"truestep: {wrote}", file=sys.stderr)


def read(record: Path, rules: tuple[type[Rule], ...]) -> Summary:
    """Judge the record of a run again, all its ranks together.

    Raises:
        BadRecord: there is no record, or it is not one.
    """
    files = list(records.ranks(record)) if record.is_dir() else []
    if len(files) < 2:
        summary = records.read(files[0] if files else record, select=rules)
        return replace(summary, record=str(record))
    numbers = [int(re.sub(r"\D", "", file.stem)) for file in files]
    summaries = {number: records.read(file, select=rules) for number, file in zip(numbers, files, strict=True)}
    world_size = max(*(number + 1 for number in numbers), *(summary.ranks for summary in summaries.values()))
    return replace(merge(summaries, world_size), record=str(record))
