"""A Python process with a limit of its time; nothing of it is left after the call."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process."""

    code: int | None
    """Exit code; None if it was killed at the limit."""
    out: str
    err: str


def run(arguments: Sequence[str], *, folder: Path, seconds: float) -> Ended:
    """Run this Python with arguments, without input, and kill it and its children at the limit.

    Args:
        arguments: arguments of Python.
        folder: working folder.
        seconds: limit.
    """
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
            return Ended(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            _kill(process.pid)
            out, err = process.communicate()
            return Ended(None, out, err)
        finally:
            _kill(process.pid)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
