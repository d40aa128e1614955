"""Time of one-time work, such as compiling or reading all samples, which is left out of the time of steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Aside:
    """A stopwatch for one-time work.

    Attributes:
        seconds: total so far; nested work counts once.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._begun = 0.0

    def begin(self) -> None:
        """Start the clock, or go one level down."""
        if not self._depth:
            self._begun = time.perf_counter()
        self._depth += 1

    def end(self) -> None:
        """Go one level up, or stop the clock."""
        self._depth -= 1
        if not self._depth:
            self.seconds += time.perf_counter() - self._begun

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Context manager: runs the clock during a block."""
        self.begin()
        try:
            yield
        finally:
            self.end()


aside = Aside()
"""The clock of this process."""
