"""Ends of a process that bypass the interpreter: SIGTERM and ``os._exit``; and forks, which are not supervised."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, NoReturn

# Python's `signal.signal` converts a number to SIG_DFL before it checks whether it is callable.
_signal: Any = importlib.import_module("_signal")


class Endings:
    """Calls ``ending(how)`` before the launched process ends; forked children are not affected.

    Args:
        ending: writes the report; called with the kind of end.
        forked: called in a forked child, which is not supervised.
        busy: returns True while the report is written; a SIGTERM during that time takes effect afterwards.
    """

    def __init__(
        self, ending: Callable[[str], object], forked: Callable[[], None], busy: Callable[[], bool] = lambda: False
    ) -> None:
        self._ending = ending
        self._busy = busy
        self._terminated_late = False
        self._forked = forked
        self._launched = os.getpid()
        self._exit = os._exit
        self._handler = _AsDefault(0)
        self._handler.handle = self._terminated
        self._waiting = False
        self._lent = False

    def install(self) -> None:
        self._waiting = True
        if _signal.getsignal(signal.SIGTERM) is _signal.SIG_DFL:
            self._set_signal(self._handler)
        os._exit = self._left
        os.register_at_fork(
            before=self._lend_signal, after_in_parent=self._take_signal_again, after_in_child=self._in_child
        )

    def remove(self) -> None:
        """Undo `install`, except for handlers that the program has replaced.

        A SIGTERM that arrived while the report was written ends the process here.
        """
        self._give_signal_back()
        self._waiting = False
        if os._exit == self._left:
            os._exit = self._exit
        if self._terminated_late:
            self._terminated_late = False
            os.kill(os.getpid(), signal.SIGTERM)

    def _lend_signal(self) -> None:
        # A child that starts with our handler would miss a SIGTERM in its first moments.
        self._lent = self._give_signal_back()

    def _take_signal_again(self) -> None:
        if self._lent and self._waiting:
            self._lent = not self._set_signal(self._handler)

    def _give_signal_back(self) -> bool:
        ours = _signal.getsignal(signal.SIGTERM) is self._handler
        return ours and self._set_signal(_signal.SIG_DFL)

    def _set_signal(self, handler: object) -> bool:
        if threading.get_ident() != threading.main_thread().ident:
            return False
        with contextlib.suppress(ValueError):
            _signal.signal(signal.SIGTERM, handler)
            return True
        return False

    def _in_child(self) -> None:
        self._terminated_late = False
        if self._waiting:
            self.remove()
            self._forked()

    def _terminated(self) -> None:
        if self._busy():  # torchrun terminates the other ranks as soon as one has failed
            self._terminated_late = True
            return
        self._ending("interrupted")
        self._give_signal_back()
        os.kill(os.getpid(), signal.SIGTERM)

    def _left(self, status: int) -> NoReturn:
        if self._waiting and os.getpid() == self._launched:
            self._ending("exited")
        self._exit(status)


class _AsDefault(int):
    """A signal handler that looks like ``SIG_DFL`` to the program: an int that is equal to it, and callable.

    ``signal.getsignal`` and ``signal.signal`` return the member ``SIG_DFL`` for it. So a program that checks whether
    the signal has a handler, as Lightning does, gets the same answer as without supervision.
    """

    handle: Callable[[], None]

    def __call__(self, signum: int, frame: object) -> None:
        self.handle()
