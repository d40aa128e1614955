"""``truestep report``: a page about a recorded run, or about several beside each other. Needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truestep.cli.replay import read
from truestep.cli.shell import completion
from truestep.report.page import write_page
from truestep.rules import all_rules


def report(
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD",
            help="Folders written by `truestep run --record`.",
            autocompletion=completion.records,
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the page to this file.", show_default="report.html in the first folder"
        ),
    ] = None,
) -> None:
    """Write one HTML page about a recorded run: findings, the annotated loop, curves and all facts.

    Two or more runs are compared on one page. The page needs no network, and shows the source files as they are now.
    """
    write_page.needs()
    summaries = [read(record, tuple(all_rules().values())) for record in records]
    print(write_page.write(summaries, output or default(records)))


def default(records: list[Path]) -> Path:
    """Return the file of the page: beside the first record."""
    folder = records[0] if records[0].is_dir() else records[0].parent
    return folder / ("report.html" if len(records) == 1 else "comparison.html")
