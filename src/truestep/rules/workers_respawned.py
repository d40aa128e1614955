from __future__ import annotations

from truestep.events import BackwardEnded, BatchDrawn, Event, LoaderStarted, LoaderTimed
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule


class WorkersRespawned(Rule):
    """The workers of a DataLoader are started anew in every epoch, and the training waits for it.

    What it does
    ------------
    Measures how long each pass over a loader is held up before its first batch, less the time from that batch to the
    next one of the same worker, which is at least what making a batch takes. Reports a loader that the training draws
    from where at least 5 seconds, and a fifth of the time, went into starting workers again, in 5 passes or more.

    Why it matters
    --------------
    A start imports torch and the script (with ``spawn`` and ``forkserver``) and opens the data anew, while the training
    stands still. In the proof, where a worker takes 0.6 seconds to open its data, 13 short epochs take 7 seconds
    longer. The batches are the same.

    Example
    -------
    ::

        loader = DataLoader(dataset, batch_size=64, num_workers=4)
        for epoch in range(100):            # 400 processes are started
            for x, y in loader:
                ...

    Fix
    ---
    Keep the workers from one epoch to the next::

        loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)

    Known false alarms
    ------------------
    Workers that have to be started anew, because the script changes the dataset between epochs: those that stay would
    keep their copy of it. The first start of all is not counted; loaders without workers, evaluation, passes with
    no more batches than workers, and runs for which other programs left no processor are not judged.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    id = "workers-respawned"
    since = "0.1"
    severity = Severity.SPEED
    watches = (BackwardEnded, LoaderTimed)
    needs = (LoaderStarted, BatchDrawn, BackwardEnded)
    explains = ("loader-starves-training",)

    LEAST_S = 5.0
    """Whoever waits less than this in a whole run has nothing to gain."""
    LEAST_SHARE = 0.2
    """Of the time between the first and the last batch: less is within what a busy machine adds."""
    LEAST_PASSES = 5
    """Few long epochs pay for a start."""

    def __init__(self) -> None:
        super().__init__()
        self._trained: set[int | None] = set()
        """Loaders with batches that a backward pass followed."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded():
                self._trained.add(event.loader)
            case LoaderTimed() if event.loader in self._trained and event.passes >= self.LEAST_PASSES:
                if event.starting_s >= max(self.LEAST_S, self.LEAST_SHARE * event.span_s) and not event.crowded:
                    self._found(event, run)
            case _:
                pass

    def _found(self, event: LoaderTimed, run: Progress) -> None:
        met, again = run.loaders.get(event.loader), event.passes - 1
        if met is None:
            return
        draft = self.report(
            met.site,
            f"the workers of `{met.name}` were started again {again} times, and the training waited for them",
            run=run,
            label=f"starts {met.workers} workers for every pass",
            help="pass `persistent_workers=True`, unless the dataset changes between epochs",
            cost=f"{event.starting_s:.1f} s of {event.span_s:.1f} s went into starting workers (measured)",
            unit="passes",
        )
        draft.count, draft.total, draft.first_step = again, event.passes, None
