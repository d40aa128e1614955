"""Programs in a pseudo-terminal, and the screen that a user would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyte

LIMIT_S = 120.0


class Seen:
    """A screen that interprets the output of a program."""

    def __init__(self, rows: int = 10, columns: int = 80) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=1000, ratio=1)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""

    def feed(self, block: bytes) -> None:
        self.written += block
        self._stream.feed(block)

    def resize(self, rows: int, columns: int) -> None:
        self.screen.resize(rows, columns)

    @property
    def rows(self) -> list[str]:
        """The rows of the screen, without spaces at their ends."""
        return [row.rstrip() for row in self.screen.display]


@dataclass
class Ended:
    """The end of a program in a terminal."""

    status: int
    """As of `os.waitstatus_to_exitcode`."""
    seen: Seen
    last_rows: list[str] = field(default_factory=list)
    """The texts that the last row has had."""


def set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def played(
    command: Sequence[str],
    folder: Path,
    *,
    rows: int = 10,
    columns: int = 80,
    when: str = "",
    then: Callable[[int, int, Seen], object] | None = None,
) -> Ended:
    """Run a command in a terminal of this size.

    Args:
        command: the program and its arguments.
        folder: its working folder.
        rows: height of the terminal.
        columns: width of the terminal.
        when: text in the output at which `then` is called, once.
        then: called with the process, the terminal and the screen.
    """
    process, terminal = pty.fork()
    if not process:
        try:
            os.chdir(folder)
            time.sleep(0.05)  # until the terminal has its size
            os.execve(command[0], list(command), os.environ | {"TERM": "xterm-256color"})
        finally:
            os._exit(127)
    set_size(terminal, rows, columns)
    ended = Ended(-1, Seen(rows, columns))
    limit = time.monotonic() + LIMIT_S
    try:
        while time.monotonic() < limit:
            if not select.select([terminal], [], [], 1.0)[0]:
                continue
            try:
                block = os.read(terminal, 65536)
            except OSError:  # no process has the terminal open any more
                break
            ended.seen.feed(block)
            row = ended.seen.rows[-1]
            if ended.last_rows[-1:] != [row]:
                ended.last_rows.append(row)
            if then is not None and when.encode() in ended.seen.written:
                then(process, terminal, ended.seen)
                then = None
        else:
            os.kill(process, 9)
    finally:
        os.close(terminal)
    ended.status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return ended
