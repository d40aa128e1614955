"""Progress of a run: a status line at the bottom of a terminal, single lines from time to time elsewhere.

It shows values that have already been read, and never reads a tensor. It is drawn between two steps, at most a few
times a second.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truestep.loop.process.terminal import StatusLine, is_terminal, say, terminal_width

if TYPE_CHECKING:
    from truestep.loop.log.throughput import Measurement, Throughput

_REDRAWN_S = 0.5
_LINE_S = 30.0
_EPOCH_LINE_S = 1.0
_WINDOW_S = 10.0
"""Seconds over which the speed is averaged."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Position of a run.

    Attributes:
        step: number of steps.
        steps: total number of steps of the run; None if unknown.
        epoch: number of completed epochs.
        epochs: total number of epochs of the run; None if unknown.
        batch: number of finished batches in the current pass.
        batches: number of batches in a pass; None if unknown.
        in_epoch: True inside `run.epochs()`.
    """

    step: int
    steps: int | None = None
    epoch: int = 0
    epochs: int | None = None
    batch: int = 0
    batches: int | None = None
    in_epoch: bool = False

    @property
    def part(self) -> float | None:
        """Return the completed part of the run, from 0 to 1; None if unknown.

        >>> Completion(30, epoch=1, epochs=4, batch=5, batches=10, in_epoch=True).part
        0.375
        """
        parts = []
        if self.steps:
            parts.append(self.step / self.steps)
        if self.in_epoch and self.epochs:
            parts.append((self.epoch + (self.batch / self.batches if self.batches else 0.0)) / self.epochs)
        elif self.batches and not self.steps and not self.in_epoch:
            parts.append(self.batch / self.batches)
        return min(1.0, max(parts)) if parts else None


class ProgressLine:
    """Shows the progress of a run.

    Args:
        shown: False to show nothing, as on ranks other than the first.
        pace: the clock of the run.
        last: returns the values last read from the log, by name.
    """

    def __init__(self, *, shown: bool, pace: Throughput, last: Callable[[], Mapping[str, float]]) -> None:
        self.shown = shown
        self.due = 0.0 if shown else float("inf")
        """Time of the next drawing, by `time.perf_counter`."""
        self._pace = pace
        self._last = last
        self._line: StatusLine | None = None
        self._console: Any = None
        self._begun: tuple[float, float] | None = None
        self._said = time.perf_counter()
        self._before: Measurement | None = None

    def introduce(self, text: str) -> None:
        """Print the line on models and data, and start the status line on a terminal."""
        if self.shown:
            say(f"truestep: {text}")
            if is_terminal(sys.stderr):
                self._line = StatusLine(sys.stderr)

    def show(self, position: Completion) -> None:
        """Draw the position of the run."""
        now = time.perf_counter()
        if self._begun is None:
            self._begun = now, position.part or 0.0
            self._before = self._pace.measure(position.step)
        if self._line is not None:
            self.due = now + _REDRAWN_S
            self._line.show(self._drawn(position, now))
        elif now - self._said >= _LINE_S:
            self._say(position, now)
        else:
            self.due = self._said + _LINE_S

    def end_epoch(self, position: Completion) -> None:
        """Write a line for an epoch outside of a terminal: at most one per second, and always for the last epoch."""
        if not self.shown or self._line is not None:
            return
        now = time.perf_counter()
        if now - self._said >= _EPOCH_LINE_S or (position.part or 0.0) >= 1.0:
            self._say(position, now)

    def close(self) -> None:
        """Erase the status line."""
        if self._line is not None:
            self._line.close()
            self._line = None
        self.due = float("inf")

    def _say(self, position: Completion, now: float) -> None:
        self._said, self.due = now, now + _LINE_S
        say("truestep: " + ", ".join(self._words(position, now)))

    def _words(self, position: Completion, now: float) -> list[str]:
        """Return the parts of the line."""
        words = []
        if position.in_epoch:
            number = position.epoch + (position.batch > 0)  # between two, that of the one that ended
            words.append(f"epoch {number}" + (f"/{position.epochs}" if position.epochs else ""))
        words.append(f"step {position.step}" + (f"/{position.steps}" if position.steps else ""))
        words += [f"{name} {value:.4g}" for name, value in self._last().items()][:6]
        if self._before is not None:
            current = self._pace.measure(position.step)
            words += spoken(current.since(self._before))
            if current.seconds - self._before.seconds > _WINDOW_S:
                self._before = current
        begun, part_then = self._begun or (now, 0.0)
        words.append(clock(now - begun))
        part = position.part
        if part is not None and part_then < part < 1.0 and now - begun > 1.0:
            words.append(f"{clock((now - begun) * (1 - part) / (part - part_then))} left")
        return words

    def _drawn(self, position: Completion, now: float) -> str:
        """Return the status line, at most as wide as the terminal, with escape sequences for colours."""
        from rich.console import Console
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        width = terminal_width(sys.stderr)
        if self._console is None:
            self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False)
        grid = Table.grid(padding=(0, 1))
        row: list[Any] = [Text("  ".join(self._words(position, now)), no_wrap=True, overflow="ellipsis")]
        if position.part is not None and width >= 60:
            row.insert(0, ProgressBar(total=1.0, completed=position.part, width=16))
        for _ in row:
            grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(*row)
        self._console.file = drawn = io.StringIO()
        self._console.print(grid, end="", width=max(10, width - 1), no_wrap=True)
        return drawn.getvalue().rstrip("\n")


def spoken(measured: Mapping[str, float]) -> list[str]:
    """Return speed and memory, each with its unit.

    >>> spoken({"steps_per_s": 41.27, "samples_per_s": 2641.3, "mfu": 0.312, "memory_bytes": 1.5e9})
    ['2641 samples/s', '41.3 steps/s', 'MFU 31 %', '1.5 GB']
    """
    words = []
    for name, unit in (("samples_per_s", "samples/s"), ("steps_per_s", "steps/s")):
        if name in measured:
            value = measured[name]
            words.append(f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}")
    if "mfu" in measured:
        words.append(f"MFU {measured['mfu']:.0%}".replace("%", " %"))
    if "memory_bytes" in measured:
        size = measured["memory_bytes"]
        words.append(f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB")
    return words


def clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds.

    >>> clock(3725)
    '1:02:05'
    """
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{left:02}"
