"""How long a run waited for each loader, and how much of that, at the least, went into starting its workers again.

The first batch of a run is left out: what is loaded or filled once is no habit.

A first batch that comes late is no proof of a slow start: making a batch may take that long. Workers get their batches
in turn, so the time from the first batch to the next one of the same worker is at least what it takes to make one.
What the run waited for the first batch beyond that went into the start.

Others may have the processors that the run needs: how long the training's own thread waited for one is told beside.
"""

from __future__ import annotations

from truestep.events import LoaderTimed

_LEAST_S = 1.0
"""Shorter waits are not told: of a quick run no number depends on the clock."""
_CROWDED = 0.15
"""Share of the time for which the thread, which mostly waits, has no processor when it wants one: others have them."""
MOST = 1000
"""Loaders that are timed at most."""


def processor() -> float:
    """Return how long this thread has been ready to run and had no processor, in seconds (on Linux; else 0)."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as numbers:
            return int(numbers.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class Wait:
    """What is known of the time spent on one loader. All times are those of one clock, in seconds."""

    __slots__ = ("begun", "beside", "drawn", "latest", "loader", "passes", "processor", "starting", "waited", "workers")

    def __init__(self, loader: int, workers: int, now: float) -> None:
        self.loader, self.workers = loader, workers
        """Workers that are started for each pass and give their batches in turn."""
        self.begun = self.latest = now
        self.waited = self.starting = 0.0
        self.passes = self.drawn = 0
        self.beside = False
        self.processor = processor()

    def told(self) -> LoaderTimed | None:
        """Return the event about this loader, None where it is not worth one."""
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
        """When the first batch came."""
        self._held = now - begun
        """How long the making of the iterator, and then the first batch, held the run up."""
        self._begins = not wait.drawn
        """Whether it is the first pass of all."""
        wait.passes += 1
        if not self._begins:
            wait.waited += self._held

    def drawn(self, begun: float, now: float) -> None:
        """Take up that a batch was asked for and came."""
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
