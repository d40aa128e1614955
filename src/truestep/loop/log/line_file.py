"""A file of lines that a run appends to, with a buffer for lines while the disk is full."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

_MOST_WAITING = 100_000
"""Most unwritten lines to keep; older ones are dropped, and counted."""


class LineFile:
    """Appends complete lines. Lines that cannot be written are kept, and written with the next ones.

    Args:
        path: path of the file, which is created with the first line.
        failed: called with the error, the first time that lines cannot be written.

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
        """Number of lines that were dropped."""
        self._failed = failed
        self._has_failed = False

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self.path.stat().st_size if self.path.exists() else 0

    def add(self, lines: Sequence[str]) -> None:
        """Write waiting lines, then these lines."""
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
                    os.truncate(self.path, begin)  # remove a half-written line
                raise

    def secure(self) -> int:
        """Try to write waiting lines, flush the file to the disk (`fsync`), and return its size in bytes."""
        self.add(())
        if not self.path.exists():
            return 0
        try:
            with self.path.open("ab") as file:
                os.fsync(file.fileno())
                return file.tell()
        except OSError:
            return self.size
