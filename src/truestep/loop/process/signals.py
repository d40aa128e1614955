"""SIGTERM, SIGINT and SIGUSR1: the step is finished, the run saved, then it ends with 143, 130 or 138.

SIGUSR1 is what Slurm sends ahead of a time limit (`#SBATCH --signal=USR1@90`). It is a warning: another signal after it
changes the exit code, and does not end the program at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from types import FrameType
from typing import Any

_DEFAULTS: dict[int, Any] = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
WARNING: int = getattr(signal, "SIGUSR1", -1)
"""The signal that warns of an end; -1 where there is none, on Windows."""
if WARNING != -1:
    _DEFAULTS[WARNING] = signal.SIG_DFL


class Signals:
    """Takes signals while a loop runs, only where nobody else handles them, and only in the main thread.

    A first signal sets a flag that the loop reads between two steps. A second one ends the program at once, as it
    would have without us; SIGUSR1 does not count as a first one.

    Args:
        handled: False to leave signals alone: a run without folder has nothing to save.
        warning: what follows from SIGUSR1, after saving: "end", "requeue" or "save".
    """

    def __init__(self, *, handled: bool = True, warning: str = "end") -> None:
        self.received = 0
        """The number of the signal that asks for an end, or for a checkpoint; 0 for none."""
        self.warning = warning
        self._handled = handled
        self._before: dict[int, Any] = {}
        self._depth = 0

    @property
    def exit_code(self) -> int:
        """What a shell shows for a program that the signal ended."""
        return 128 + self.received

    def obeyed(self) -> bool:
        """Return True if the program goes on after the checkpoint that a signal asked for; else it ends now."""
        if self.received != WARNING:
            return False
        if self.warning == "save":
            self.received = 0
            return True
        if self.warning == "requeue":
            requeue()
        return False

    def install(self) -> None:
        """Begin to take signals; nested calls count."""
        self._depth += 1
        if self._depth > 1 or not self._handled or threading.current_thread() is not threading.main_thread():
            return
        for number, default in _DEFAULTS.items():
            if signal.getsignal(number) is default:
                self._before[number] = signal.signal(number, self._take)

    def remove(self) -> None:
        """End what `install` began; the last call puts back the handlers that were there."""
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            self.put_back()

    def put_back(self) -> None:
        """Put back the handlers that were there, also where a loop was left without an end."""
        self._depth = 0
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may; a loop that another one collects leaves them to the end of the run
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
        with contextlib.suppress(OSError):  # not print(): it raises where the signal came in the middle of another one
            os.write(2, f"truestep: {name}: finishing the step and saving; {then}\n".encode())


_AFTER = {"end": "then the program ends", "requeue": "then the job is queued again", "save": "then the run goes on"}


def requeue() -> None:
    """Ask Slurm to put the job into its queue again; say so where that fails, and go on."""
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
