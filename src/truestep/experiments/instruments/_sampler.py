"""Looks at a thread every millisecond: which of the user's lines is it at?"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import NamedTuple

from truestep.experiments.instruments._clock import PhaseClock
from truestep.probes._sites import Sites

_EVERY_S = 0.001
_SWITCH_S = 0.0002
"""How long python lets a thread go on while another one wants to run. With the usual 5 ms, looks would be put off until
the thread lets go by itself, which is where operations of torch begin."""
_MOST = 300_000
_DEEPEST = 12

Line = tuple[str, int, str]
"""Path, number and function."""


class Sample(NamedTuple):
    """One look.

    Attributes:
        time: of `time.perf_counter`.
        seconds: since the last look: how much it stands for.
        phase: that was under way.
        stretch: of the clock.
        lines: of the user's code, the innermost first; empty where there is none.
    """

    time: float
    seconds: float
    phase: str
    stretch: int
    lines: tuple[Line, ...]


class Sampler:
    """Looks at the thread of a clock until it is stopped.

    Args:
        clock: knows the phase.
        sites: knows the user's code.
    """

    def __init__(self, clock: PhaseClock, sites: Sites) -> None:
        self.samples: list[Sample] = []
        self._clock = clock
        self._sites = sites
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._switch = 0.0

    def start(self) -> None:
        """Begin to look."""
        self._switch = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch, _SWITCH_S))
        self._over.clear()
        self._thread = threading.Thread(target=self._look, name="truestep: sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End to look. Nothing happens where nobody does."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None
            sys.setswitchinterval(self._switch)

    def _look(self) -> None:
        last = time.perf_counter()
        wanted = self._clock.thread
        while not self._over.wait(_EVERY_S) and len(self.samples) < _MOST:
            frame = sys._current_frames().get(wanted) if wanted is not None else None
            now = time.perf_counter()
            self.samples.append(Sample(now, now - last, self._clock.now, self._clock.stretch, self._lines(frame)))
            last = now
            frame = None  # who holds the frame of a function that has returned holds its variables

    def _lines(self, frame: FrameType | None) -> tuple[Line, ...]:
        found: list[Line] = []
        while frame is not None and len(found) < _DEEPEST:
            code = frame.f_code
            if self._sites.kind(code) == 0 and not code.co_filename.startswith("<"):
                found.append((code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_qualname))
            frame = frame.f_back
        return tuple(found)
