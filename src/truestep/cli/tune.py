"""``truestep tune``: measure the gain of each recommended speed-up on a script."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import (
    Arguments,
    Format,
    Limit,
    Memory,
    Module,
    PageFile,
    bench_of,
    check_page,
    explained,
    write_page,
)
from truestep.cli.experimenting.stopping import Exit, stoppable
from truestep.cli.shell import completion
from truestep.cli.shell.progress import StageProgress
from truestep.errors import UsageError
from truestep.experiments.reports.pages import tune_page
from truestep.experiments.reports.tune import catalogue, document, text
from truestep.experiments.tune.tune import chosen
from truestep.experiments.tune.tune import tune as run_tune


@stoppable
def tune(
    script: Annotated[
        str | None,
        typer.Argument(metavar="SCRIPT", help="Path of the script; with -m, a module name.", show_default=False),
    ] = None,
    arguments: Arguments = None,
    module: Module = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Try only this speed-up; can be repeated.",
            autocompletion=completion.speedups,
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip", metavar="NAME", help="Skip this speed-up; can be repeated.", autocompletion=completion.speedups
        ),
    ] = None,
    larger_batch: Annotated[
        bool, typer.Option("--larger-batch", help="Also try batches of twice the size, which changes the training.")
    ] = False,
    budget: Annotated[
        float, typer.Option(min=10, metavar="SECONDS", help="Approximate time for the whole command.")
    ] = 300.0,
    listed: Annotated[bool, typer.Option("--list", help="List all speed-ups and exit.")] = False,
    limit: Limit = 600.0,
    memory: Memory = None,
    format: Format = "text",
    report: PageFile = None,
) -> int:
    """Measure the gain of each recommended speed-up on a script: alone, then combined.

    Each is applied from outside, and its steps alternate with steps of the unchanged script; where it gains, the losses
    are compared too. The script itself is not changed. It runs in a copy of the working folder, with trackers off, and
    overwrites nothing. Exit code 0 if speed-ups were measured, 3 if none could be, 2 for a usage error.
    """
    if listed:
        print(catalogue())
        return 0
    if script is None:
        raise UsageError(
            "no script was given",
            expected="expected the path of a script",
            remedy="give one, or --list to see the speed-ups",
        )
    check_page(report)
    names = chosen(_split(only), _split(skip), larger_batch)
    bench = bench_of(script, arguments, module, steps=None, limit=limit, memory=memory)
    progress = StageProgress()
    with explained(bench):
        result = run_tune(bench, names, budget, progress)
    progress.end()
    write_page(
        report, lambda words: tune_page(f"truestep tune {words}", script, result, text(script, result)), bench.target
    )
    print(json.dumps(document(script, result), indent=2) if format == "json" else text(script, result))
    if result.interrupted:
        return Exit.INTERRUPTED
    return Exit.UNSURE if result.left_out and not result.tried else Exit.FINE


def _split(names: list[str] | None) -> list[str]:
    return [name.strip() for given in names or () for name in given.split(",") if name.strip()]
