"""Time that is spent once, not in every step: compiling, reading all samples. What times steps leaves it out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Aside:
    """A clock that runs while something is done once.

    Attributes:
        seconds: until now; nested work counts once.
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
        """Let the clock run over a block."""
        self.begin()
        try:
            yield
        finally:
            self.end()


aside = Aside()
"""The clock of this process."""
