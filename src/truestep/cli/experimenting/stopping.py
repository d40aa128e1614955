"""Exit codes of experiments; a clean end on Ctrl-C, SIGTERM and SIGHUP, which leaves no process and no folder."""

from __future__ import annotations

import contextlib
import enum
import functools
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Exit(enum.IntEnum):
    """Exit codes of all experiments. After a signal, the exit code is 128 plus its number."""

    FINE = 0
    FAILS = 1
    UNUSABLE = 2
    UNSURE = 3
    INTERRUPTED = 130


def stoppable(command: Callable[..., int]) -> Callable[..., int]:
    """Decorate a command so that a signal raises KeyboardInterrupt in it: it ends its runs, removes its folders and
    prints the results so far.

    Args:
        command: returns an exit code. It may catch KeyboardInterrupt, which stands for any of the signals.
    """

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> int:
        caught: list[int] = []
        with _signals(caught):
            try:
                code = command(*args, **kwargs)
            except KeyboardInterrupt:
                code = Exit.INTERRUPTED
                with contextlib.suppress(OSError):
                    sys.stderr.write("\ninterrupted before anything was measured\n")
        return 128 + caught[0] if caught else code

    return guarded


@contextmanager
def _signals(caught: list[int]) -> Iterator[None]:
    """Raise KeyboardInterrupt on the first signal, and ignore later ones: removing processes and folders takes a while.

    Args:
        caught: the number of the signal is appended to it.
    """

    def ask(number: int, frame: object) -> None:
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        caught.append(number)
        raise KeyboardInterrupt

    wanted = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in wanted if signal.getsignal(number) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
