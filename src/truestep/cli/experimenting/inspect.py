"""``truestep inspect``: layers, activations, gradients and losses of one step of a script."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import (
    Arguments,
    Format,
    Limit,
    Memory,
    Module,
    Processes,
    Script,
    bench_of,
    explained,
)
from truestep.cli.experimenting.stopping import Exit, stoppable
from truestep.experiments.inspect.inspect import inspect as run_inspect
from truestep.experiments.reports import inspect as report
from truestep.report.color import console

_WIDTHS = (80, 140)
"""Fewest and most columns."""


@stoppable
def inspect(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    step: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Optimizer step to inspect.", show_default="2, or 1 if there is no 2"),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Show modules with at most N modules around them.", show_default=False),
    ] = None,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    format: Format = "text",
) -> int:
    """Show the layers of one training step of a script, and its losses as trees.

    For each layer: shapes, type, parameters, statistics of the activations, length of the gradient. For each loss: its
    terms, the parameters that each reaches, and where the gradient is cut. The script itself is not changed. It runs in
    a copy of the working folder, with trackers off, and is stopped after the step; if it crashes in it, the
    layers up to the error are shown. Exit code 0; 3 if it took no such step.
    """
    bench = bench_of(script, arguments, module, steps=None, limit=limit, memory=memory, processes=processes)
    with explained(bench):
        found = run_inspect(bench, step)
    code = Exit.FINE if found.ended else Exit.UNSURE
    if found.outcome.how == "crashed":
        sys.stderr.write(found.outcome.said.rstrip() + "\n\n")
    if format == "json":
        print(json.dumps(report.document(found), indent=2))
        return code
    columns = shutil.get_terminal_size((_WIDTHS[0], 24)).columns
    width = min(max(columns, _WIDTHS[0]), _WIDTHS[1])
    # The brackets in the names of variables are not markup.
    console(width=width, markup=False, emoji=False).print(report.text(found, os.getcwd(), width, depth))
    return code
