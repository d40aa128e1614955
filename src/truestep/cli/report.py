"""``truestep report``: a page about a recorded run, or about several beside each other. Needs no torch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from truestep.cli.replay import read
from truestep.cli.shell import completion
from truestep.findings import Summary
from truestep.report.page import write_page
from truestep.report.page.line_times import Times, read_times
from truestep.rules import all_rules

_PAUSE_S = 2.0
"""Seconds between two looks at the records."""


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
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Show the time of each line, from a file of `truestep profile --format json`.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Write the page again while a run goes on; open pages reload.")
    ] = False,
) -> None:
    """Write one HTML page about a recorded run: findings, the annotated loop, curves and all facts.

    Two or more runs are compared on one page. The page needs no network, and shows the source files as they are now.
    """
    write_page.needs()
    file = output or default(records)
    times = None if profile is None else read_times(profile)
    if follow:
        _follow(records, file, times)
    print(write_page.write(_read(records), file, times=times))


def _read(records: list[Path]) -> list[Summary]:
    return [read(record, tuple(all_rules().values())) for record in records]


def _follow(records: list[Path], file: Path, times: Times | None) -> None:
    """Write the page whenever a record has grown, until all runs have ended or Ctrl-C."""
    size, told = -1, False
    try:
        while True:
            now = sum(one.stat().st_size for record in records for one in _files(record))
            if now != size:
                size, summaries = now, _read(records)
                if all(summary.how != "unfinished" for summary in summaries):
                    return
                line = write_page.write(summaries, file, reload_s=_PAUSE_S, times=times)
                if not told:
                    print(f"{line}; it follows the run until its end, or Ctrl-C", flush=True)
                    told = True
            time.sleep(_PAUSE_S)
    except KeyboardInterrupt:
        return


def _files(record: Path) -> list[Path]:
    return sorted(record.rglob("*.jsonl")) if record.is_dir() else [record]


def default(records: list[Path]) -> Path:
    """Return the file of the page: beside the first record."""
    folder = records[0] if records[0].is_dir() else records[0].parent
    return folder / ("report.html" if len(records) == 1 else "comparison.html")
