"""Sample a thread every millisecond: which line of the user's code is it running?"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from itertools import accumulate, chain, repeat
from operator import attrgetter
from types import CodeType
from typing import Any, NamedTuple

from truestep.experiments.instruments.timing.clock import PhaseClock
from truestep.probes.context.sites import Sites

_EVERY_S = 0.001
_SWITCH_S = 0.0002
"""Switch interval of Python while sampling. With the default of 5 ms, samples would wait until the thread releases the
GIL where an operation of torch begins."""
_MOST = 300_000
_DEEPEST = 12

CodeLine = tuple[str, int, str]
"""Path, number and function."""


class Sample(NamedTuple):
    """One sample.

    Attributes:
        time: time by `time.perf_counter`.
        seconds: seconds since the last sample, and so the weight of this one.
        phase: current phase.
        stretch: stretch of the clock.
        lines: lines of the user's code, the innermost first; empty for none.
    """

    time: float
    seconds: float
    phase: str
    stretch: int
    lines: tuple[CodeLine, ...]


class Sampler:
    """Samples the thread of a clock until it is stopped.

    Args:
        clock: clock of the phases.
        sites: classification of code as the user's or a library's.
    """

    def __init__(self, clock: PhaseClock, sites: Sites) -> None:
        self.samples: list[Sample] = []
        self._clock = clock
        self._sites = sites
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._switch = 0.0

    def start(self) -> None:
        """Start sampling."""
        self._switch = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch, _SWITCH_S))
        self._over.clear()
        self._thread = threading.Thread(target=self._look, name="truestep: sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling; does nothing if it is not running."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None
            sys.setswitchinterval(self._switch)

    def _look(self) -> None:
        last = time.perf_counter()
        wanted = self._clock.thread
        while not self._over.wait(_EVERY_S) and len(self.samples) < _MOST:
            places = places_of(wanted) if wanted is not None else []
            now = time.perf_counter()
            self.samples.append(Sample(now, now - last, self._clock.now, self._clock.stretch, self._lines(places)))
            last = now

    def _lines(self, places: list[tuple[CodeType, int | None]]) -> tuple[CodeLine, ...]:
        found: list[CodeLine] = []
        for code, line in places:
            if self._sites.kind(code) == 0 and not code.co_filename.startswith("<"):
                found.append((code.co_filename, line or code.co_firstlineno, code.co_qualname))
                if len(found) == _DEEPEST:
                    break
        return tuple(found)


_PLACE = attrgetter("f_code", "f_lineno")


def places_of(thread: int) -> list[tuple[CodeType, int | None]]:
    """Return the code objects and lines of a thread's stack, innermost first; an empty list for an unknown thread.

    The stack is read by functions in C, without releasing the GIL: in CPython 3.11, reading the frame of a function
    that returned in between crashes the process.
    """
    frames: list[Any] = []
    places: list[tuple[CodeType, int | None]] = []
    with suppress(AttributeError):  # None, behind the outermost frame, has no f_back
        outwards: Any = chain((sys._current_frames().get(thread),), repeat("f_back"))
        frames.extend(accumulate(outwards, getattr))
    frames.pop()
    places.extend(map(_PLACE, frames))
    frames.clear()  # a held frame keeps the variables of a function that has returned
    return places
