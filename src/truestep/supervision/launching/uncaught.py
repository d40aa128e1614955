"""Printing of uncaught exceptions and exit codes as in python, without frames of truestep."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_FOLDERS = ("supervision", "probes", "seams", "rules", "cli", "report")
_OURS = (*(os.path.join(_PACKAGE, folder, "") for folder in _FOLDERS), "<truestep,")


def strip(error: BaseException) -> None:
    """Remove frames of truestep from the tracebacks of an exception, its causes and the members of its groups."""
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        one = rest.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _without_ours(one.__traceback__)
        rest += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            rest += one.exceptions


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_OURS):
            kept.append(traceback)
        traceback = traceback.tb_next
    for one, following in pairwise(kept):
        one.tb_next = following
    if kept:
        kept[-1].tb_next = None
    return kept[0] if kept else None


def described(error: BaseException) -> str:
    """Return the type and the first line of an exception, as in the last line of its traceback.

    >>> described(ImportError("No module named 'tyro'"))
    "ImportError: No module named 'tyro'"
    """
    try:
        first = str(error).strip().partition("\n")[0][:200]
    except Exception:
        first = ""
    name = type(error).__name__
    return f"{name}: {first}" if first else name


def show(error: BaseException) -> object:
    """Print an uncaught exception as python does, by the program's own excepthook; return the exit code.

    This repeats the steps of ``PyErr_Print``, which cannot be called from Python. Leaving the exception uncaught would
    add the frames of the command line to its traceback.
    """
    strip(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        _write("sys.excepthook is missing\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
        return 1
    try:
        hook(type(error), error, error.__traceback__)
    except SystemExit as leave:
        return exit_code(leave)
    except BaseException as second:
        strip(second)
        _write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(second), second, second.__traceback__)
        _write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    return 1


def show_in_shutdown(error: BaseException, threading: object) -> None:
    """Print an exception in the wait for the program's threads, as python does."""
    strip(error)
    message = f"Exception ignored on threading shutdown {threading!r}" if sys.version_info >= (3, 13) else None
    place = None if message else threading
    sys.unraisablehook(_unraisable()((type(error), error, error.__traceback__, message, place)))


def _unraisable() -> Any:
    """Return the type that `sys.unraisablehook` requires, taken from an argument, since it cannot be imported."""
    caught: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, caught.append

    class Failing:
        def __del__(self) -> None:
            raise ValueError

    try:
        Failing()
    finally:
        sys.unraisablehook = hook
    return type(caught[0])


def exit_code(error: SystemExit) -> object:
    """Return the exit code of a ``sys.exit``: None, a number, or 1 after printing its argument."""
    code = error.code
    if code is None or isinstance(code, int):
        return code
    _write(f"{code}\n")
    return 1


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass
