"""A file of lines that a run appends to, and what happens to them while the disk is full."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

_MOST_WAITING = 100_000
"""Lines that are kept while they cannot be written; older ones are dropped, and counted."""


class LineFile:
    """Appends whole lines. Those that cannot be written are kept, and written with the next ones.

    Args:
        path: made with the first line.
        failed: called once, with the error, when lines cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lines = LineFile(Path(folder) / "a.jsonl", failed=print)
        ...     lines.add(["1", "2"])
        ...     lines.path.read_text(), lines.size
        ('1\\n2\\n', 4)
    """

    def __init__(self, path: Path, *, failed: Callable[[OSError], object]) -> None:
        self.path = path
        self.waiting: list[str] = []
        self.lost = 0
        """Lines that were dropped because too many waited."""
        self._failed = failed
        self._has_failed = False

    @property
    def size(self) -> int:
        """Return how many bytes of whole lines the file has."""
        return self.path.stat().st_size if self.path.exists() else 0

    def add(self, lines: Sequence[str]) -> None:
        """Write lines, after those that wait."""
        self.waiting += lines
        if not self.waiting:
            return
        try:
            self._write("".join(f"{line}\n" for line in self.waiting).encode())
        except OSError as error:
            over = len(self.waiting) - _MOST_WAITING
            if over > 0:
                del self.waiting[:over]
                self.lost += over
            if not self._has_failed:
                self._has_failed = True
                self._failed(error)
        else:
            self.waiting.clear()

    def _write(self, data: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            begin = file.tell()
            try:
                left = memoryview(data)
                while left:
                    left = left[file.write(left) :]
            except OSError:
                with contextlib.suppress(OSError):
                    os.truncate(self.path, begin)  # no half a line
                raise

    def secure(self) -> int:
        """Try again what waits, bring the file to the disk itself, and return its size in bytes."""
        self.add(())
        if not self.path.exists():
            return 0
        try:
            with self.path.open("ab") as file:
                os.fsync(file.fileno())
                return file.tell()
        except OSError:
            return self.size
