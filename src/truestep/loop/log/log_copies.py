"""Copies of the log besides `metrics.jsonl`: trackers, and `system.jsonl` for speed and memory.

Times differ from run to run. They are not in `metrics.jsonl`, which a resumed run reproduces byte for byte. If a copy
cannot be written, this is reported once and the copy is abandoned; training continues.
"""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from truestep.trackers.line import LogLine, read
from truestep.trackers.tracking import Ending, Start, Tracking


class LogCopies:
    """The copies of the log of one run.

    Args:
        folder: folder of the run.
        settings: settings of the run, by name.
        tracking: trackers of the run.
        measure: returns speed and memory since its last call, by name.
        tell: shows one line to the user.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        tracking: Tracking,
        *,
        measure: Callable[[], dict[str, float]],
        tell: Callable[[str], object],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._tracking = tracking
        self._measure = measure
        self._tell = tell
        self._step = 0
        self._writable = True

    @property
    def _system(self) -> Path:
        return self._folder / "system.jsonl"

    def open(self) -> None:
        """Start the trackers, with the lines logged before."""
        if self._tracking.waits:
            self._tracking.open(Start(self._folder, self._settings, self._step, self._history))

    def write(self, lines: Sequence[LogLine]) -> None:
        """Copy lines of the log, and write speed and memory."""
        measured = self._measure()
        last = lines[-1]
        if measured and self._writable:
            try:
                with self._system.open("a", encoding="utf-8") as file:
                    file.write(
                        LogLine(last.step, last.epoch, {"time": round(time.time(), 3), **measured}).text() + "\n"
                    )
            except OSError as error:
                self._writable = False
                self._tell(f"truestep: {self._system.name} is left ({error}); the training and metrics.jsonl go on")
        self._tracking.write([*lines, *_as_system(LogLine(last.step, last.epoch, measured))])

    def size(self) -> int:
        """Return the size of `system.jsonl` in bytes."""
        return self._system.stat().st_size if self._system.exists() else 0

    def cut(self, size: int, step: int) -> None:
        """Truncate `system.jsonl` to the checkpoint that the run resumes from."""
        self._step = step
        if self.size() > size:
            os.truncate(self._system, size)

    def close(self, ending: Ending) -> None:
        """End the trackers."""
        self._tracking.close(ending)

    def _history(self) -> Iterator[LogLine]:
        system = (line for kept in read(self._system) for line in _as_system(kept))
        return heapq.merge(read(self._folder / "metrics.jsonl"), system, key=lambda line: line.step)


def _as_system(line: LogLine) -> list[LogLine]:
    """Return speed and memory as a line for trackers, with the prefix `system/`; [] if nothing was measured."""
    values = {f"system/{name}": value for name, value in line.values.items() if name != "time"}
    return [LogLine(line.step, line.epoch, values)] if values else []
