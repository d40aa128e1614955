"""``truestep exercise``: scripts with a planted failure, and functions to be written."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from truestep.cli.experimenting.stopping import stoppable
from truestep.cli.learning import exercise_texts as texts
from truestep.cli.shell import completion
from truestep.errors import FileExists, NoSuchScript, PackageMissing, UnwritableFolder, UsageError
from truestep.exercises.catalogue import Exercise, FunctionsToWrite, PlantedFailure, exercise, exercises
from truestep.exercises.judging import LIMIT_S, Answer, judge_functions, judge_script
from truestep.report.color import console as colored_console

_WIDEST = 100


@stoppable
def exercise_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Its name; leave it out to list all.",
            show_default=False,
            autocompletion=completion.exercises,
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH", help="The file to write or to check.", show_default="NAME.py in the working folder"
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the file: is the failure mended?")] = False,
    hint: Annotated[bool, typer.Option("--hint", help="Show a hint.")] = False,
    solution: Annotated[bool, typer.Option("--solution", help="Show the solution, with an explanation.")] = False,
    seconds: Annotated[float, typer.Option(min=1, help="Time after which a check stops the file.")] = LIMIT_S,
) -> int:
    """Write an exercise: a training script with one silent failure, or functions to be written.

    Find the failure before TrueStep does. The script runs on data that come with scikit-learn, in seconds. With
    --check, your version is run under supervision: it must have no failure, and reach the metric of a healthy one.
    A file is never overwritten. Exit code 0 if a check passes, 1 if not, 2 for a usage error.
    """
    console = colored_console()
    console.width = max(min(console.width, _WIDEST), 60)
    if sum((check, hint, solution)) > 1:
        raise UsageError(
            "--check, --hint and --solution were given together",
            expected="expected one of them",
            remedy="leave out the others",
        )
    if name is None:
        texts.show_list(list(exercises().values()), console)
        return 0
    chosen = exercise(name)
    if hint:
        texts.show_hint(chosen, console)
        return 0
    if solution:
        texts.show_solution(chosen, console)
        return 0
    place = _place(chosen, path)
    if check:
        return _check(chosen, place, seconds)
    _write(chosen, place)
    texts.show_task(chosen, place, console)
    return 0


def _place(chosen: Exercise, path: Path | None) -> Path:
    if path is None:
        return Path(chosen.file)
    return path / chosen.file if path.is_dir() else path


def _write(chosen: Exercise, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(chosen.text())
    except FileExistsError:
        raise FileExists(
            f"{path} exists already and was not changed",
            expected="expected a path without a file",
            remedy=f"check it: truestep exercise {chosen.name} --check; or write another one: "
            f"truestep exercise {chosen.name} {path.stem}_2.py",
        ) from None
    except OSError as error:
        raise UnwritableFolder(
            f"{path} cannot be written",
            expected=f"expected a path that can be written, got: {error.strerror or error}",
            remedy=f"give another one: truestep exercise {chosen.name} PATH",
        ) from None


def _check(chosen: Exercise, path: Path, seconds: float) -> int:
    if not path.is_file():
        raise NoSuchScript(
            f"{path} is not there",
            expected="expected the file of the exercise, with your changes",
            remedy=f"write it with `truestep exercise {chosen.name}`, or give its path after the name",
        )
    if find_spec("torch") is None or find_spec("sklearn") is None:
        raise PackageMissing(
            "exercises run with torch on data of scikit-learn, and one of them is not installed",
            expected="expected both in the environment of truestep",
            remedy="pip install 'truestep[new]'",
        )
    console = colored_console()
    console.width = max(min(console.width, _WIDEST), 60)
    if isinstance(chosen, PlantedFailure):
        judgement = judge_script(chosen, path, seconds)
        texts.show_judgement(chosen, path, judgement, seconds, console)
        return 0 if judgement.answer is Answer.MENDED else 1
    assert isinstance(chosen, FunctionsToWrite)
    checks = judge_functions(chosen, path, seconds)
    texts.show_checks(chosen, path, checks, console)
    return 0 if checks and all(one.passed for one in checks) else 1
