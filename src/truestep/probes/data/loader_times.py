"""Time that a run waited for each loader, and a lower bound of the part that went into restarting its workers.

The first batch of a run is left out, since one-time loading does not repeat.

A late first batch does not prove a slow start: making a batch may take that long. Workers get their batches in turn, so
the time from the first batch to the next one of the same worker is an upper bound of the time to make one. Any longer
wait for the first batch went into the start.

Other programs may occupy the processors: the time that the training thread waited for one is recorded too.
"""

from __future__ import annotations

from truestep.events import LoaderTimed

_LEAST_S = 1.0
"""Shorter waits are not reported, so that the report of a quick run does not depend on the clock."""
_CROWDED = 0.15
"""Fraction of the time without a processor, for a thread that mostly waits, from which a machine is crowded."""
MOST = 1000
"""Largest number of loaders to time."""


def processor() -> float:
    """Return the seconds that this thread has waited for a processor (on Linux; else 0)."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as numbers:
            return int(numbers.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class Wait:
    """Times of one loader, in seconds of one clock."""

    __slots__ = ("begun", "beside", "drawn", "latest", "loader", "passes", "processor", "starting", "waited", "workers")

    def __init__(self, loader: int, workers: int, now: float) -> None:
        self.loader, self.workers = loader, workers
        """Number of workers that start for each pass and yield their batches in turn."""
        self.begun = self.latest = now
        self.waited = self.starting = 0.0
        self.passes = self.drawn = 0
        self.beside = False
        self.processor = processor()

    def event(self) -> LoaderTimed | None:
        """Return the event about this loader; None if its waits are too short."""
        if self.waited < _LEAST_S:
            return None
        delayed = processor() - self.processor
        span = self.latest - self.begun
        return LoaderTimed(
            loader=self.loader,
            passes=self.passes,
            drawn=self.drawn,
            waited_s=round(self.waited, 3),
            starting_s=round(self.starting, 3),
            span_s=round(span, 3),
            delayed_s=round(delayed, 3),
            crowded=delayed > _CROWDED * span,
            beside=self.beside,
        )


class Pass:
    """One pass over a loader."""

    __slots__ = ("_batches", "_begins", "_came", "_held", "_wait")

    def __init__(self, wait: Wait, begun: float, now: float) -> None:
        self._wait = wait
        self._batches = 0
        self._came = now
        """Time of the first batch."""
        self._held = now - begun
        """Seconds that the run waited for the iterator and the first batch."""
        self._begins = not wait.drawn
        """True for the first pass over the loader."""
        wait.passes += 1
        if not self._begins:
            wait.waited += self._held

    def drawn(self, begun: float, now: float) -> None:
        """Record the request and arrival of a batch."""
        wait = self._wait
        wait.latest = now
        wait.drawn += 1
        self._batches += 1
        if self._begins:
            if self._batches == 1:
                wait.begun = now
            else:
                wait.waited += now - begun
            return
        wait.waited += now - begun
        if self._batches == 1:
            self._held += now - begun
            self._came = now
        elif self._batches == wait.workers + 1 and wait.workers:
            wait.starting += max(0.0, self._held - (now - self._came))
