"""Whether the workers of a loader give the same batches, as fingerprints of the first ones tell."""

from __future__ import annotations

from truestep.events import BatchRead, Event, LoaderMet, LoaderStarted
from truestep.rules._rule import Progress

_LEAST_VARIETY = 8
"""So many different fractions say that batches of different samples are not equal by chance."""


class Repeats:
    """Compares the batches of the first two rounds of a loader's workers.

    Args:
        iterable: whether loaders over an IterableDataset are compared, or the others.
    """

    def __init__(self, *, iterable: bool) -> None:
        self._iterable = iterable
        self._prints: dict[int, dict[int, BatchRead]] = {}
        """Loader to the batches read in the pass under way, by their place."""
        self.compared = False
        """Whether a loader of this kind could be compared."""

    def found(self, event: Event, run: Progress) -> LoaderMet | None:
        """Take up an event; return the loader when it shows that its workers give the same batches."""
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
