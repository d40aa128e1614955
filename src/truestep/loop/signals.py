"""SIGTERM and SIGINT: the step is finished, the run saved, then it ends with 143 or 130."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import Any

_DEFAULTS: dict[signal.Signals, Any] = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


class Signals:
    """Takes signals while a loop runs, only where nobody else handles them, and only in the main thread.

    A first signal sets a flag that the loop reads between two steps. A second one ends the program at once, as it
    would have without us.

    Args:
        handled: False to leave signals alone: a run without folder has nothing to save.
    """

    def __init__(self, *, handled: bool = True) -> None:
        self.received = 0
        """The number of the signal that asks for an end; 0 for none."""
        self._handled = handled
        self._before: dict[signal.Signals, Any] = {}
        self._depth = 0

    @property
    def exit_code(self) -> int:
        """What a shell shows for a program that the signal ended."""
        return 128 + self.received

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
        if self.received:
            default = _DEFAULTS[signal.Signals(number)]
            signal.signal(number, default)
            signal.raise_signal(number)
            return
        self.received = number
        name = signal.Signals(number).name
        with contextlib.suppress(OSError):  # not print(): it raises where the signal came in the middle of another one
            os.write(2, f"truestep: {name}: finishing the step and saving; once more ends at once\n".encode())
