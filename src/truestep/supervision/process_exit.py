"""The ways in which a process ends before its interpreter does: SIGTERM, ``os._exit`` and, for us, a fork."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, NoReturn

# Python's own `signal.signal` turns a number into SIG_DFL before it looks whether it can be called.
_signal: Any = importlib.import_module("_signal")


class Endings:
    """Calls ``ending(how)`` before the process that was launched dies; leaves its children alone.

    Args:
        ending: writes the report; called with how the program ended.
        forked: called in a forked child, where nothing is watched.
        busy: whether the report is being written: a SIGTERM that comes meanwhile takes effect when it is done.
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
        """Put back what `install` replaced, unless the program has put something else there.

        A SIGTERM that came while the report was written ends the process here.
        """
        self._give_signal_back()
        self._waiting = False
        if os._exit == self._left:
            os._exit = self._exit
        if self._terminated_late:
            self._terminated_late = False
            os.kill(os.getpid(), signal.SIGTERM)

    def _lend_signal(self) -> None:
        # A child that is born with our handler would miss a SIGTERM sent in its first moments.
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
        if self._busy():  # torchrun ends the other ranks at once when one has failed
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
    """A signal handler that the program takes for ``SIG_DFL``, which it is: a number equal to it, and callable.

    ``signal.getsignal`` and ``signal.signal`` return the very member ``SIG_DFL`` for it, so that a program which asks
    whether somebody handles the signal already (Lightning does) is told the truth about itself.
    """

    handle: Callable[[], None]

    def __call__(self, signum: int, frame: object) -> None:
        self.handle()
