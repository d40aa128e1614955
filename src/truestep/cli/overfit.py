"""``truestep overfit``: test whether a script's model and loop can learn one batch."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import (
    Arguments,
    Format,
    Fresh,
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
from truestep.cli.experimenting.stopping import Exit, stoppable
from truestep.experiments.overfit.overfit import LearningVerdict, losses_of
from truestep.experiments.overfit.overfit import overfit as run_overfit
from truestep.experiments.reports.overfit import document, text, until
from truestep.experiments.reports.pages import overfit_page
from truestep.experiments.reports.picture import svg
from truestep.experiments.running.outcome import Interrupted

CODES = {
    LearningVerdict.LEARNS: Exit.FINE,
    LearningVerdict.FALLS: Exit.FINE,
    LearningVerdict.STUCK: Exit.FAILS,
    LearningVerdict.DIVERGES: Exit.FAILS,
}


@stoppable
def overfit(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps on the batches.")] = 200,
    batches: Annotated[int, typer.Option(min=1, help="Number of batches to learn.")] = 1,
    no_dropout: Annotated[bool, typer.Option("--no-dropout", help="Disable dropout.")] = False,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    fresh: Fresh = False,
    format: Format = "text",
    picture: Picture = None,
    report: PageFile = None,
) -> int:
    """Run a script on its first batch again and again: can its model and loop learn it by heart?

    The script itself is not changed. It runs in a copy of the working folder, with trackers off, and overwrites
    nothing. Exit code 0 if it learns, 1 if it is stuck or diverges, 3 if the answer is uncertain, 2 for a usage error.
    """
    if picture is not None:
        check_picture(picture)
    check_page(report)
    bench = bench_of(
        script, arguments, module, steps=steps, limit=limit, memory=memory, processes=processes, fresh=fresh
    )
    with explained(bench):
        try:
            result = run_overfit(bench, batches=batches, dropout=not no_dropout)
        except Interrupted as interrupted:
            print(until(losses_of(interrupted.outcome)))
            return Exit.INTERRUPTED
    if picture is not None:
        finite = [loss for loss in result.losses if math.isfinite(loss)]
        write_picture(picture, svg({"loss": [finite or [0.0]]}, result.sentence))
    write_page(report, lambda words: overfit_page(f"truestep overfit {words}", result, text(result)), bench.target)
    print(json.dumps(document(result), indent=2) if format == "json" else text(result))
    return CODES[result.answer]
