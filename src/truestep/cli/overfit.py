"""``truestep overfit``: test whether a script's model and loop can learn one batch."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from textwrap import wrap
from typing import Annotated

import typer

from truestep.cli._experiment import (
    Arguments,
    Format,
    Fresh,
    Limit,
    Memory,
    Module,
    Picture,
    Processes,
    Script,
    bench_of,
    check_picture,
    explained,
    write_picture,
)
from truestep.cli._stopping import Exit, stoppable
from truestep.experiments.charts.curve import drawn
from truestep.experiments.charts.picture import svg
from truestep.experiments.overfit.overfit import Answer, Overfit, losses_of
from truestep.experiments.overfit.overfit import overfit as run_overfit
from truestep.experiments.running.outcome import Interrupted

CODES = {
    Answer.LEARNS: Exit.FINE,
    Answer.FALLS: Exit.FINE,
    Answer.STUCK: Exit.FAILS,
    Answer.DIVERGES: Exit.FAILS,
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
) -> int:
    """Run a script on its first batch again and again: can its model and loop learn it by heart?

    The script itself is not changed. It runs in a copy of the working folder, with trackers off, and overwrites
    nothing. Exit code 0 if it learns, 1 if it is stuck or diverges, 3 if the answer is uncertain, 2 for a usage error.
    """
    if picture is not None:
        check_picture(picture)
    bench = bench_of(
        script, arguments, module, steps=steps, limit=limit, memory=memory, processes=processes, fresh=fresh
    )
    with explained(bench):
        try:
            result = run_overfit(bench, batches=batches, dropout=not no_dropout)
        except Interrupted as interrupted:
            print(_until(losses_of(interrupted.outcome)))
            return Exit.INTERRUPTED
    if picture is not None:
        finite = [loss for loss in result.losses if math.isfinite(loss)]
        write_picture(picture, svg({"loss": [finite or [0.0]]}, result.sentence))
    print(_json(result) if format == "json" else _text(result))
    return CODES[result.answer]


def _until(losses: Sequence[float]) -> str:
    """Return the conclusion about a run that was interrupted."""
    if not losses:
        return "cannot tell: interrupted before the first step"
    return f"cannot tell: interrupted after {len(losses)} steps; the loss went from {losses[0]:.4g} to {losses[-1]:.4g}"


def _text(result: Overfit) -> str:
    finite = [loss for loss in result.losses if math.isfinite(loss)]
    parts = ["\n".join(drawn(finite))] if len(finite) > 1 else []
    parts.append("\n".join(wrap(result.sentence, 80)))
    if result.plain is not None and result.plain.findings:
        parts.append(f"findings of truestep run:\n\n{result.plain.report.rstrip()}")
    parts += ["\n".join(wrap(f"why: {cause}", 80, subsequent_indent="     ")) for cause in result.causes]
    if result.plain is not None and not result.plain.findings and not result.causes:
        hint = "" if result.answer is Answer.FALLS else ": look at the learning rate, the labels and the model's size"
        parts.append("\n".join(wrap(f"truestep run finds no failure in it{hint}", 80)))
    return "\n\n".join(parts)


def _json(result: Overfit) -> str:
    told = {
        "answer": str(result.answer),
        "sentence": result.sentence,
        "losses": [loss if math.isfinite(loss) else str(loss) for loss in result.losses],
        "how": result.outcome.how,
        "seconds": round(result.outcome.seconds, 3),
        "changes": {name: dict(counts) for name, counts in result.outcome.changes.items()},
        "causes": list(result.causes),
        "report": result.plain.report if result.plain is not None else "",
    }
    return json.dumps(told, indent=2)
