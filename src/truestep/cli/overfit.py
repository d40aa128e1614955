"""``truestep overfit``: can this model and loop learn at all?"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Literal

import typer

from truestep.errors import NoExperiment, UnwritableFolder
from truestep.experiments.bench import Bench
from truestep.experiments.curve import drawn, svg
from truestep.experiments.overfit import Answer, Overfit
from truestep.experiments.overfit import overfit as run_overfit
from truestep.watch.program import Target, prepare


def overfit(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="What to run; with -m, a module.", show_default=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="The script's own.")] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")] = False,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps on the batches.")] = 200,
    batches: Annotated[int, typer.Option(min=1, help="How many batches are learnt.")] = 1,
    no_dropout: Annotated[bool, typer.Option("--no-dropout", help="Switch dropout off.")] = False,
    limit: Annotated[float, typer.Option(help="Seconds after which a run is ended.")] = 600.0,
    format: Annotated[Literal["text", "json"], typer.Option(help="Form of the report.")] = "text",
    picture: Annotated[Path | None, typer.Option("--svg", help="File for the curve as a picture.")] = None,
) -> int:
    """Run a script on its first batch again and again: can its model and loop learn it by heart?

    The script itself is not changed. It runs in a copy of the working folder, with trackers off, and overwrites
    nothing. Exit code 0 when it learns, 1 when it is stuck or diverges, 2 when there was nothing to see.
    """
    target = Target(script, tuple(arguments or ()), module)
    prepare(target)
    bench = Bench(target, steps, limit_s=limit)
    try:
        result = run_overfit(bench, batches=batches, dropout=not no_dropout)
    except NoExperiment as error:
        if error.said:
            sys.stderr.write(error.said.rstrip() + "\n\n")
        raise
    if picture is not None:
        finite = [loss for loss in result.losses if math.isfinite(loss)]
        write_picture(picture, svg({"loss": finite or [0.0]}, result.sentence))
    print(_json(result) if format == "json" else _text(result))
    return 0 if result.answer in (Answer.LEARNS, Answer.FALLS) else 1


def _text(result: Overfit) -> str:
    finite = [loss for loss in result.losses if math.isfinite(loss)]
    parts = ["\n".join(drawn(finite))] if len(finite) > 1 else []
    parts.append("\n".join(wrap(result.sentence, 80)))
    if result.plain is not None and result.plain.findings:
        parts.append(f"what truestep run finds in it:\n\n{result.plain.report.rstrip()}")
    elif result.plain is not None:
        parts.append("truestep run finds no failure in it: look at the learning rate, the labels and the model's size.")
    return "\n\n".join(parts)


def _json(result: Overfit) -> str:
    told = {
        "answer": str(result.answer),
        "sentence": result.sentence,
        "losses": [loss if math.isfinite(loss) else str(loss) for loss in result.losses],
        "how": result.outcome.how,
        "seconds": round(result.outcome.seconds, 3),
        "changes": {name: dict(counts) for name, counts in result.outcome.changes.items()},
        "report": result.plain.report if result.plain is not None else "",
    }
    return json.dumps(told, indent=2)


def write_picture(path: Path, text: str) -> None:
    """Write a picture, or say why that cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnwritableFolder(
            f"the picture cannot be written to {path}",
            expected=f"a file that can be written; got: {error.strerror or error}",
            remedy="give another one with --svg",
        ) from None
