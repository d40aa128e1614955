"""SIGTERM, SIGINT and SIGUSR1: the run finishes its step, saves, and ends with exit code 143, 130 or 138.

Slurm sends SIGUSR1 ahead of a time limit (`#SBATCH --signal=USR1@90`). It is a warning: another signal after it changes
the exit code, but does not end the program at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from types import FrameType
from typing import Any

_DEFAULTS: dict[int, Any] = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
WARNING: int = getattr(signal, "SIGUSR1", -1)
"""Number of the signal that warns of a time limit; -1 on Windows, which has none."""
if WARNING != -1:
    _DEFAULTS[WARNING] = signal.SIG_DFL


class Signals:
    """Handles signals while a loop runs, only if they have no other handler, and only in the main thread.

    The first signal sets a flag that the loop reads between two steps. The second one ends the program at once, with
    the default handler; SIGUSR1 does not count as the first.

    Args:
        handled: False to handle no signals, for a run without a folder to save into.
        warning: action after the save that follows SIGUSR1: "end", "requeue" or "save".
    """

    def __init__(self, *, handled: bool = True, warning: str = "end") -> None:
        self.received = 0
        """Number of the pending signal; 0 for none."""
        self.warning = warning
        self._handled = handled
        self._before: dict[int, Any] = {}
        self._depth = 0

    @property
    def exit_code(self) -> int:
        """Exit code of a program that was ended by the signal, as a shell shows it."""
        return 128 + self.received

    def obeyed(self) -> bool:
        """Return True if the run continues after the checkpoint for a signal; False if it ends."""
        if self.received != WARNING:
            return False
        if self.warning == "save":
            self.received = 0
            return True
        if self.warning == "requeue":
            requeue()
        return False

    def install(self) -> None:
        """Install the handlers; nested calls are counted."""
        self._depth += 1
        if self._depth > 1 or not self._handled or threading.current_thread() is not threading.main_thread():
            return
        for number, default in _DEFAULTS.items():
            if signal.getsignal(number) is default:
                self._before[number] = signal.signal(number, self._take)

    def remove(self) -> None:
        """Undo one call of `install`; the last one restores the previous handlers."""
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            self.restore()

    def restore(self) -> None:
        """Restore the previous handlers, also after a loop that was abandoned."""
        self._depth = 0
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread can; handlers of a loop collected by another thread stay until the run ends
        while self._before:
            number, handler = self._before.popitem()
            if signal.getsignal(number) == self._take:
                signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.received and number == WARNING:
            return
        if self.received not in (0, WARNING):
            signal.signal(number, _DEFAULTS[number])
            signal.raise_signal(number)
            return
        self.received = number
        name = signal.Signals(number).name
        then = "once more ends at once" if number != WARNING else _AFTER[self.warning]
        with contextlib.suppress(OSError):  # not print(), which raises if the signal interrupted another print
            os.write(2, f"truestep: {name}: finishing the step and saving; {then}\n".encode())


def spare_once(within_s: float) -> None:
    """Let one SIGTERM do nothing in a program that is about to end with an error, unless it has its own handler.

    Args:
        within_s: seconds from now; a later signal ends the program.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    known = signal.getsignal(signal.SIGTERM)
    if known is not signal.SIG_DFL and not isinstance(getattr(known, "__self__", None), Signals):
        return
    until = time.monotonic() + within_s

    def take(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if time.monotonic() > until:
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, take)


_AFTER = {"end": "then the program ends", "requeue": "then the job is queued again", "save": "then the run goes on"}


def requeue() -> None:
    """Requeue the job in Slurm; on failure, print the reason and continue."""
    job = os.environ.get("SLURM_JOB_ID")
    failed = "SLURM_JOB_ID is not set"
    if job is not None:
        if "SLURM_ARRAY_JOB_ID" in os.environ and "SLURM_ARRAY_TASK_ID" in os.environ:
            job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
        try:
            done = subprocess.run(["scontrol", "requeue", job], capture_output=True, text=True, check=False)
            failed = done.stderr.strip() if done.returncode else ""
        except OSError as error:
            failed = str(error)
    if failed:
        with contextlib.suppress(OSError):
            os.write(2, f"truestep: the job was not queued again: {failed}\n".encode())
