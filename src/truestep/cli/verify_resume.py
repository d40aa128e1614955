"""``truestep verify-resume``: compare a run that is killed and resumed with an uninterrupted one."""

from __future__ import annotations

import json
import shlex
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import (
    Arguments,
    Format,
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
from truestep.cli.experimenting.stopping import Exit, stoppable
from truestep.errors import UsageError
from truestep.experiments.reports.picture import svg
from truestep.experiments.reports.resume import curves, document, shown, text
from truestep.experiments.resume.resume import verify_resume as run_verify
from truestep.experiments.resume.trial import ResumeVerdict

CODES = {
    ResumeVerdict.EXACT: Exit.FINE,
    ResumeVerdict.ROUNDING: Exit.FINE,
    ResumeVerdict.NOTHING_SAVED: Exit.FAILS,
    ResumeVerdict.UNREPEATABLE: Exit.UNSURE,
    ResumeVerdict.DIFFERS: Exit.FAILS,
    ResumeVerdict.STARTED_AGAIN: Exit.FAILS,
    ResumeVerdict.CRASHED: Exit.FAILS,
}


@stoppable
def verify_resume(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    resume_args: Annotated[
        str, typer.Option(metavar="ARGS", help="Extra arguments for the resumed script.", show_default=False)
    ] = "",
    kills: Annotated[int, typer.Option(min=1, help="Number of kills, each in a separate run.")] = 3,
    at: Annotated[
        list[int] | None, typer.Option(min=1, metavar="STEP", help="Kill after this step; can be repeated.")
    ] = None,
    during_save: Annotated[bool, typer.Option(help="Kill once in the middle of a save.")] = True,
    seed: Annotated[int, typer.Option(help="Seed for the choice of steps to kill at.")] = 0,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps after which a run ends.")] = 2000,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    format: Format = "text",
    picture: Picture = None,
) -> int:
    """Kill a script (kill -9), resume it, and show the first step that differs from an uninterrupted run.

    The script itself is not changed. It runs in copies of the working folder, with trackers off, and overwrites
    nothing. Exit code 0 if every resumed run is exact, 1 if one is not, 3 if the answer is uncertain, 2 for a usage
    error.
    """
    if picture is not None:
        check_picture(picture)
    bench = bench_of(script, arguments, module, steps=steps, limit=limit, memory=memory, processes=processes)
    with explained(bench):
        result = run_verify(bench, _split(resume_args), kills=kills, seed=seed, at=at or (), during_save=during_save)
    if picture is not None:
        trial = shown(result)
        one, other = curves(result, trial).values()
        write_picture(picture, svg({"uninterrupted": one, "resumed": other}, f"loss; killed {trial.kill}"))
    print(json.dumps(document(result), indent=2) if format == "json" else text(result))
    return Exit.INTERRUPTED if result.interrupted else CODES[result.verdict]


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise UsageError(
            f"--resume-args cannot be parsed: {str(error).lower()}",
            expected="expected arguments in the syntax of a shell",
            remedy="close its quotes",
        ) from None
