"""How experiments end: exit codes; Ctrl-C, SIGTERM and SIGHUP, which leave no process and no folder behind."""

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
    """Exit codes of all experiments. A signal ends them with 128 and its number."""

    FINE = 0
    FAILS = 1
    UNUSABLE = 2
    UNSURE = 3
    INTERRUPTED = 130


def stoppable(command: Callable[..., int]) -> Callable[..., int]:
    """Let a signal unwind a command: its runs are ended, its folders removed, what it has until then is printed.

    Args:
        command: returns an exit code. It may catch KeyboardInterrupt, whatever the signal was.
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
                    sys.stderr.write("\ninterrupted: nothing was measured until then\n")
        return 128 + caught[0] if caught else code

    return guarded


@contextmanager
def _signals(caught: list[int]) -> Iterator[None]:
    """Turn the first signal that asks for an end into KeyboardInterrupt, and ignore later ones: cleaning takes a while.

    Args:
        caught: gets the number of the signal.
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
