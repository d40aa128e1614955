"""``truestep profile``: show where the time and the memory of a script's steps go."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import (
    Arguments,
    Format,
    Limit,
    Memory,
    Module,
    PageFile,
    Picture,
    Processes,
    Script,
    bench_of,
    check_page,
    check_picture,
    explained,
    write_page,
    write_picture,
)
from truestep.cli.experimenting.stopping import stoppable
from truestep.errors import UsageError
from truestep.experiments.profile.profile import profile as run_profile
from truestep.experiments.reports import profile as report
from truestep.experiments.reports.pages import profile_page
from truestep.experiments.reports.text import rendered
from truestep.report.color import console


@stoppable
def profile(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps to time, and then as many to profile.")] = 20,
    warmup: Annotated[int, typer.Option(min=0, help="Optimizer steps to skip first.")] = 5,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a trace for ui.perfetto.dev, .json or .json.gz.", show_default=False),
    ] = None,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    format: Format = "text",
    picture: Picture = None,
    page: PageFile = None,
) -> int:
    """Run some steps of a script, and show where their time and memory go.

    By phase, line, module and operation, with the compilations of torch.compile. The script itself is not changed. It
    runs in a copy of the working folder, with trackers off, overwrites nothing, and is stopped after its steps. Times
    are measured on steps without a profiler. Exit code 0; 2 if there was nothing to measure.
    """
    if picture is not None:
        check_picture(picture)
    check_page(page)
    if trace is not None:
        _check_trace(trace)
    bench = bench_of(script, arguments, module, steps=None, limit=limit, memory=memory, processes=processes)
    with explained(bench):
        found = run_profile(bench, steps=steps, warmup=warmup, trace=trace)
    if found.outcome.how == "crashed":
        sys.stderr.write(found.outcome.said.rstrip() + "\n\n")
    if picture is not None:
        if found.memory is None or not found.memory.curve:
            raise UsageError(
                "memory was not measured, so --picture cannot draw it",
                expected="expected at least one profiled step",
                remedy="lower --warmup and --steps, or give arguments with which the script trains longer",
            )
        write_picture(picture, report.picture(found))
    write_page(
        page,
        lambda words: profile_page(
            f"truestep profile {words}", found, os.getcwd(), rendered(report.text(found, os.getcwd()))
        ),
        bench.target,
    )
    if format == "json":
        print(json.dumps(report.document(found), indent=2))
        return 0
    # The brackets in lines of code are not markup.
    printed = report.text(found, os.getcwd(), trace if found.slower[0] is not None else None)
    console(width=80, markup=False, emoji=False).print(printed)
    return 0


def _check_trace(trace: Path) -> None:
    if not trace.name.endswith((".json", ".json.gz")):
        raise UsageError(
            f"--trace must end in .json or .json.gz, got {trace.name}",
            remedy=f"write --trace {trace.stem or 'trace'}.json.gz",
        )
