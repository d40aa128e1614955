"""Detection of loader workers that give identical batches, by fingerprints of their first batches."""

from __future__ import annotations

from truestep.events import BatchRead, Event, LoaderMet, LoaderStarted
from truestep.rules._rule import Progress

_LEAST_VARIETY = 8
"""With at least this many different fractions, batches of different samples are not equal by chance."""


class Repeats:
    """Compares the batches of the first two rounds of a loader's workers.

    Args:
        iterable: True compares loaders over an IterableDataset, False all others.
    """

    def __init__(self, *, iterable: bool) -> None:
        self._iterable = iterable
        self._prints: dict[int, dict[int, BatchRead]] = {}
        """Loader to the batches read in the current pass, by their position."""
        self.compared = False
        """Whether a loader of this kind could be compared."""

    def found(self, event: Event, run: Progress) -> LoaderMet | None:
        """Update the state with an event; return the loader if its workers are now known to give identical batches."""
        if isinstance(event, LoaderStarted):
            self._prints.pop(event.loader, None)
            return None
        if not isinstance(event, BatchRead):
            return None
        met = run.loaders.get(event.loader)
        if met is None or met.iterable is not self._iterable or met.workers < 2:
            return None
        if not self._iterable and met.sampler not in ("sequential", "random"):
            return None
        places = (0, 1, met.workers, met.workers + 1)
        if event.place not in places:
            return None
        read = self._prints.setdefault(event.loader, {})
        read[event.place] = event
        if len(read) < len(set(places)):
            return None
        self.compared = True
        del self._prints[event.loader]
        if any(batch.variety < _LEAST_VARIETY for batch in read.values()):
            return None
        first, other, second, after = (read[place].fingerprint for place in places)
        return met if first == other != second == after else None
