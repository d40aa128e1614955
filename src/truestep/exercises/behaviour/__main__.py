"""Run the checks of one exercise in this process: ``python -m truestep.exercises.behaviour NAME FILE RESULT``.

Each check writes a line to RESULT as soon as it is done, as JSON: title, True if it passed, message.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TextIO


def main(name: str, file: str, result: str) -> None:
    """Load the file of a user, and run all checks of an exercise on it."""
    checks: tuple[Callable[[ModuleType], None], ...]
    checks = importlib.import_module(f"truestep.exercises.behaviour.{name}").CHECKS
    spec = importlib.util.spec_from_file_location("exercise", file)
    assert spec is not None
    assert spec.loader is not None
    answer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(answer)
    with Path(result).open("w", encoding="utf-8") as out:
        for check in checks:
            _run(check, answer, file, out)


def _run(check: Callable[[ModuleType], None], answer: ModuleType, file: str, out: TextIO) -> None:
    title = (check.__doc__ or "").split("\n")[0].rstrip(".")
    try:
        check(answer)
    except NotImplementedError as error:
        message = f"not written yet{_place(error, file)}"
    except AssertionError as error:
        message = str(error)
    except Exception as error:
        message = f"{type(error).__name__}: {error}{_place(error, file)}"
    else:
        message = ""
    out.write(json.dumps([title, not message, message]) + "\n")
    out.flush()


def _place(error: BaseException, file: str) -> str:
    """Return the line of the user's file that raised an error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", at line {lines[-1]} of {Path(file).name}" if lines else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
