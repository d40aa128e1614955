"""``truestep repeat``: is a script reproducible, and if not, why?"""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import Arguments, Format, Limit, Memory, Module, Script, bench_of, explained
from truestep.cli.experimenting.stopping import Exit, stoppable
from truestep.experiments.repeat.repeat import RepeatVerdict
from truestep.experiments.repeat.repeat import repeat as run_repeat
from truestep.experiments.reports.repeat import document, text

CODES = {RepeatVerdict.EQUAL: Exit.FINE, RepeatVerdict.ROUNDING: Exit.FINE, RepeatVerdict.DIFFERS: Exit.FAILS}
"""Exit codes by verdict."""


@stoppable
def repeat(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    runs: Annotated[int, typer.Option(min=2, help="Number of runs to compare.")] = 2,
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps after which a run ends.")] = 2000,
    budget: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="SECONDS", help="Time after which the search for the cause ends.", show_default=False
        ),
    ] = None,
    limit: Limit = 600.0,
    memory: Memory = None,
    format: Format = "text",
) -> int:
    """Run a script twice or more, and show the first step that differs and the cause.

    Weights, optimizer, batches and losses of each step are compared, bit by bit. If the runs differ, further ones with
    all sources of randomness controlled but one name the cause: a generator without a seed, the order of a set, the
    clock, threads. The script is not changed: it runs in copies of the working folder, with trackers off. Exit code 0
    if the runs are equal, at least within rounding, 1 if not, 3 if this cannot be judged, 2 for a usage error.
    """
    bench = bench_of(script, arguments, module, steps=steps, limit=limit, memory=memory)
    with explained(bench):
        result = run_repeat(bench, runs, math.inf if budget is None else budget)
    print(json.dumps(document(result), indent=2) if format == "json" else text(result))
    return Exit.INTERRUPTED if result.interrupted and budget is None else CODES[result.verdict]
