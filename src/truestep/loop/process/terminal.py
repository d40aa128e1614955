"""Output on a terminal that is shared with the program: single lines, and a status line at the bottom.

Output of the program, by `print`, `logging` or tqdm, is unchanged: the status line is erased before anything is
written, and is drawn again only when the cursor is at the start of a line.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO

_WIPE = "\r\x1b[2K"


spoken = True
"""False on ranks other than 0."""


def say(text: str) -> None:
    """Write a line to stderr; a closed terminal is ignored, so that training continues."""
    if not spoken:
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class StatusLine:
    """The status line at the bottom of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False
        self._guards: list[tuple[str, _Guard]] = []
        self.at_start = True
        """True if the cursor is at the start of a line, as far as known."""
        self._guard()

    def show(self, text: str) -> None:
        """Draw or redraw the status line, unless the program is in the middle of a line."""
        if self.at_start and not tqdm_is_drawing():
            self._write(_WIPE + text)
            self._shown = True

    def hide(self) -> None:
        """Erase the status line, if it is shown."""
        if self._shown:
            self._shown = False
            self._write(_WIPE)

    def close(self) -> None:
        """Erase the status line, and restore the streams."""
        self.hide()
        while self._guards:
            name, guard = self._guards.pop()
            if getattr(sys, name) is guard:
                setattr(sys, name, guard.stream)

    def _guard(self) -> None:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and is_terminal(stream):
                guard = _Guard(stream, self)
                setattr(sys, name, guard)
                self._guards.append((name, guard))

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


class _Guard:
    """A stream that erases the status line before anything is written to it."""

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self.stream = stream
        self._line = line

    def write(self, text: str) -> int:
        self._line.hide()
        if text:
            self._line.at_start = text.endswith("\n")
        return self.stream.write(text)

    def writelines(self, lines: Any) -> None:
        for text in lines:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __iter__(self) -> Any:
        return iter(self.stream)


def is_terminal(stream: Any) -> bool:
    """Return True if a stream is a terminal that understands escape sequences."""
    try:
        return bool(stream.isatty()) and os.environ.get("TERM", "") != "dumb"
    except (AttributeError, ValueError):
        return False


def terminal_width(stream: Any) -> int:
    """Return the width of a terminal in characters; 80 if unknown."""
    if (columns := os.environ.get("COLUMNS", "")).isdigit():
        return int(columns) or 80
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def tqdm_is_drawing() -> bool:
    """Return True if a tqdm progress bar is shown, with which a status line would conflict."""
    module = sys.modules.get("tqdm.std")
    bars = getattr(getattr(module, "tqdm", None), "_instances", ())
    return any(not getattr(bar, "disable", False) for bar in list(bars))
