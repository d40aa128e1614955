"""Draw a status line on the last row of a terminal, in a process beside the script.

The rows above it become the scroll region of the terminal, so that the script's output scrolls there and never reaches
the last row. Cursor and colours are saved and restored around each drawing, which is one write. The process ends, and
gives the row back, when its standard input ends: at any end of the script, also by ``os._exit`` or ``kill -9``. It
imports nothing but the standard library, and is started by its path.

    python -I drawer.py TERMINAL PID SECONDS
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

_DRAW_S = 1.0
"""Longest time between two drawings: the time that has passed is shown in seconds."""
_SOON_S = 0.25
"""Shortest time between two drawings."""
_QUIET_S = 5.0
"""Time without a step after which the line says so."""
_LEAST_ROWS, _LEAST_COLUMNS = 4, 20


class Screen:
    """The last row of a terminal.

    Args:
        terminal: file descriptor of the terminal, open for writing.
        group: process group of the script: nothing is drawn while another one is in the foreground.
    """

    def __init__(self, terminal: int, group: int) -> None:
        self._terminal = terminal
        self._group = group
        self._size = (0, 0)
        """Columns and rows for which the row is reserved; (0, 0) if it is not."""

    def draw(self, pieces: list[tuple[str, str]]) -> None:
        """Draw a line, and reserve the row again if the size of the terminal has changed.

        Args:
            pieces: texts, each with the parameters of its colour, such as "31"; "" for none.
        """
        columns, rows = os.get_terminal_size(self._terminal)
        if rows < _LEAST_ROWS or columns < _LEAST_COLUMNS or not self._is_in_front():
            self.release()
            return
        begin = ""
        if self._size != (columns, rows):
            # The cursor must not be on the last row: index, which scrolls there, and up again, in the same column.
            old = self._size[1]
            begin = (f"\x1b7\x1b[r\x1b[{old};1H\x1b[2K\x1b8" if 0 < old < rows else "\x1b7\x1b[r\x1b8") + "\x1bD\x1b[A"
            self._size = (columns, rows)
        # The region is set each time: a script, or the command reset, may have cleared it.
        self._write(f"{begin}\x1b7\x1b[1;{rows - 1}r\x1b[{rows};1H\x1b[m\x1b[2K{_fit(pieces, columns - 1)}\x1b[m\x1b8")

    def release(self) -> None:
        """Give the row back."""
        rows, self._size = self._size[1], (0, 0)
        if rows:
            self._write(f"\x1b7\x1b[r\x1b[{rows};1H\x1b[2K\x1b8")

    def _is_in_front(self) -> bool:
        try:
            return os.tcgetpgrp(self._terminal) == self._group
        except OSError:
            return True

    def _write(self, text: str) -> None:
        os.write(self._terminal, text.encode())


def _fit(pieces: list[tuple[str, str]], columns: int) -> str:
    """Return the pieces with their colours, cut at a number of columns.

    >>> _fit([("step 5", ""), ("  1 finding", "31")], 10)
    'step 5\\x1b[31m  1…\\x1b[m'
    """
    shown, left = "", columns
    for text, colour in pieces:
        cut = text if len(text) <= left else text[: max(left - 1, 0)] + "…" * (left > 0)
        shown += f"\x1b[{colour}m{cut}\x1b[m" if colour and cut else cut
        left -= len(cut)
    return shown


def pieces_of(state: dict[str, object], seconds: float, silent: float) -> list[tuple[str, str]]:
    """Return the pieces of a line, the most important first.

    Args:
        state: texts of the run, by name, and "findings".
        seconds: time since the start.
        silent: time since the last message.

    >>> pieces_of({"step": "step 3", "found": "no findings"}, 62.0, 0.1)
    [(' 1:02', '2'), ('  step 3', '2'), ('  no findings', '2')]
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    pieces = [(f" {hours}:{minutes:02}:{rest:02}" if hours else f" {minutes}:{rest:02}", "2")]
    pieces += [(f"  {state[name]}", "2") for name in ("step", "loss", "rate", "norm", "speed") if state.get(name)]
    if silent > _QUIET_S:
        pieces.append((f"  no step for {int(silent)} s", "2"))
    if state.get("found"):
        pieces.append((f"  {state['found']}", str(state.get("colour") or "2")))
    return pieces


def follow(screen: Screen, source: int, script: int, passed: float = 0.0) -> None:
    """Draw the messages of the script until they end, then give the row back.

    Args:
        screen: where to draw.
        source: file descriptor with one JSON object per line.
        script: process that writes them; the messages also end with it.
        passed: seconds since the start of the script.
    """
    begun = heard = time.monotonic()
    rest, state = b"", dict[str, object]()
    drawn = -_DRAW_S
    try:
        while True:
            wait = max(_SOON_S - (time.monotonic() - drawn), 0.0) if b"\n" in rest else _SOON_S
            if select.select([source], [], [], wait)[0]:
                block = os.read(source, 65536)
                if not block:
                    return
                rest += block
            elif not _is_alive(script):
                return
            now = time.monotonic()
            fresh = b"\n" in rest and now - drawn >= _SOON_S
            if fresh:
                *_, last, rest = rest.split(b"\n")
                heard = now
                state = json.loads(last)
            if fresh or now - drawn >= _DRAW_S:
                drawn = now
                screen.draw(pieces_of(state, now - begun + passed, now - heard))
    finally:
        with contextlib.suppress(OSError):
            screen.release()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main(terminal: str, script: int, passed: float) -> None:
    """Leave the script's process tree, and draw until it ends."""
    if os.fork():
        os._exit(0)  # the script, which may wait for its children, must not find this process
    for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGTSTP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, ValueError):
        follow(Screen(os.open(terminal, os.O_RDWR | os.O_NOCTTY), os.getpgid(script)), 0, script, passed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
