"""``truestep check``: the answers of the checks on copies, from the first steps and the first evaluation of a script.

This module imports neither torch nor numpy: the program's first lines may set environment variables that they read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from truestep.cli.run import supervise
from truestep.config import Options, load_options
from truestep.supervision.launching.launch import Target

if TYPE_CHECKING:
    from truestep.findings import Summary


def check(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="Path of the script; with -m, a module name.", show_default=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGS", help="Arguments of the script.")] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module, as with python -m.")] = False,
    steps: Annotated[int, typer.Option(min=1, help="Largest number of optimizer steps.")] = 200,
    seconds: Annotated[float, typer.Option(min=0, help="Largest time, read at each backward pass and step.")] = 60.0,
    format: Annotated[Literal["text", "json"], typer.Option(help="A table and findings, or one JSON document.")] = (
        "text"
    ),
    output: Annotated[Path | None, typer.Option(help="Write the answers to this file, not to standard error.")] = None,
) -> None:
    """Check copies of a script's model and data in its first steps, up to its first evaluation.

    The script is stopped after the first evaluation that follows at least 20 optimizer steps. Exit code 0 if every
    check passed or was not asked, 1 if one failed, 2 for a usage error; the script's own code if it crashes.
    """
    from truestep.rules import battery
    from truestep.supervision.first_evaluation import FirstEvaluation

    options = load_options(
        Path.cwd() if module else Path(script).absolute().parent,
        select=[rule.id for rule in battery()],
        fail_on="warning",
        stop_on="never",
        steps=steps,
        format=format,
        output=output and output.absolute(),
    )
    until = FirstEvaluation(seconds)
    supervise(Target(script, tuple(arguments or ()), module), options, write=_write, also=until.passed)


def _write(summary: Summary, options: Options, stream: TextIO) -> str:
    from truestep.report import checks, write

    return write(summary, options, stream, rendered=checks.render)
