from __future__ import annotations

from truestep.events import BatchDrawn, Event, LoaderStarted, LoaderTimed
from truestep.findings import Severity
from truestep.rules._conditions import TRAINED_ON_LOADER
from truestep.rules._rule import Progress, Rule


class WorkersRespawned(Rule):
    """The workers of a DataLoader are restarted in every epoch, and the training waits for them.

    What it does
    ------------
    Measures the delay before the first batch of each pass over a loader, less the time from that batch to the next one
    of the same worker, which is at least the time to load a batch. Reports a training loader if at least 5 seconds, and
    a fifth of the time, were spent on restarting workers, in at least 5 passes.

    Why it matters
    --------------
    Every start imports torch and the script (with ``spawn`` and ``forkserver``) and opens the data again, while the
    training waits. In the proof, a worker takes 0.6 seconds to open its data, and 13 short epochs take 7 seconds
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
    Workers that must be restarted because the script changes the data set between epochs: persistent workers would keep
    their old copy. The very first start does not count. Not judged: loaders without workers, evaluation, passes with no
    more batches than workers, and runs in which other programs occupied the processors.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    id = "workers-respawned"
    since = "0.1"
    severity = Severity.SPEED
    account = "time"
    cost_between_steps = True
    watches = (LoaderTimed,)
    needs = (LoaderStarted, BatchDrawn, TRAINED_ON_LOADER)
    explains = ("loader-starves-training",)

    LEAST_S = 5.0
    """Least waiting time of a run, in seconds; shorter waits leave nothing to gain."""
    LEAST_SHARE = 0.2
    """Least waiting time as a share of the time between the first and the last batch; a busy machine can add less."""
    LEAST_PASSES = 5
    """Least number of passes; in few long epochs a restart costs little."""

    def unobserved(self, run: Progress) -> str:
        workers = any(run.loaders[number].workers for number in run.samples.trained & run.loaders.keys())
        return super().unobserved(run) or ("" if workers else "no training on a DataLoader with workers")

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, LoaderTimed) or event.loader not in run.samples.trained or event.crowded:
            return
        if event.passes >= self.LEAST_PASSES and event.starting_s >= max(self.LEAST_S, self.LEAST_SHARE * event.span_s):
            self._found(event, run)

    def _found(self, event: LoaderTimed, run: Progress) -> None:
        met, again = run.loaders.get(event.loader), event.passes - 1
        if met is None:
            return
        draft = self.report(
            met.site,
            f"the workers of `{met.name}` were restarted {again} times, and the training waited for them",
            run=run,
            label=f"starts {met.workers} workers for every pass",
            help="pass `persistent_workers=True`, unless the data set changes between epochs",
            cost=f"{event.starting_s:.1f} s of {event.span_s:.1f} s were spent on starting workers (measured)",
            unit="passes",
        )
        draft.count, draft.total, draft.first_step = again, event.passes, None
