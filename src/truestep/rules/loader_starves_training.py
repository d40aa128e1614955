from __future__ import annotations

from truestep.events import BatchDrawn, Event, LoaderStarted, LoaderTimed, OptimizerStepped, RunEnded
from truestep.findings import Severity
from truestep.rules._conditions import FINISHED, TRAINED_ON_LOADER
from truestep.rules._rule import Progress, Rule


class LoaderStarvesTraining(Rule):
    """The training spends most of its time waiting for batches.

    What it does
    ------------
    Measures the time that a run waits for the batches of each DataLoader that it trains on. Reports a finished run that
    waited for at least 8 seconds and for three fifths of the time between the first and the last batch. The very first
    batch does not count, because it includes work that is done only once.

    Why it matters
    --------------
    The training processor or accelerator is idle meanwhile, and a faster one would change little. In the proof, a
    sample takes 10 milliseconds to fetch; if a whole batch is fetched at a time, the run is 8 seconds shorter. The
    batches are the same.

    Example
    -------
    ::

        loader = DataLoader(ImageFolder("photos", transform), batch_size=64, shuffle=True)
        for x, y in loader:                 # decodes 64 photos while the training waits
            ...

    Fix
    ---
    Load the batches in worker processes, in parallel with the training::

        loader = DataLoader(
            ImageFolder("photos", transform), batch_size=64, shuffle=True, num_workers=4, persistent_workers=True
        )

    If this is not enough, move work that is repeated for every sample and epoch (decode, resize, tokenise) into one
    preprocessing pass, or read whole batches at a time with ``__getitems__``.

    Known false alarms
    ------------------
    None known. On Linux, time in which other programs had the processors is not counted. Not reported: runs without
    optimizer steps, runs that were stopped, evaluation, and loaders without workers next to an accelerator (which may
    be working meanwhile).

    References
    ----------
    - https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation
    """

    id = "loader-starves-training"
    since = "0.1"
    severity = Severity.SPEED
    account = "time"
    watches = (LoaderTimed, OptimizerStepped)
    needs = (LoaderStarted, BatchDrawn, OptimizerStepped, FINISHED, TRAINED_ON_LOADER)

    LEAST_S = 8.0
    """Least waiting time of a run, in seconds; shorter waits leave little to gain."""
    LEAST_SHARE = 0.6
    """Least waiting time as a share of the time between the first and the last batch: more than all other work."""

    def __init__(self) -> None:
        super().__init__()
        self._stepped = False
        self._starving: list[LoaderTimed] = []

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case OptimizerStepped():
                self._stepped = True
            case LoaderTimed() if _waited_s(event) >= self.LEAST_SHARE * event.span_s:
                if _waited_s(event) - event.delayed_s >= self.LEAST_S:
                    self._starving.append(event)

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished" or not self._stepped:
            return
        for timed in self._starving:
            met = run.loaders.get(timed.loader)
            if timed.loader not in run.samples.trained or met is None:
                continue
            if timed.crowded if met.workers else timed.beside:
                continue
            share = _waited_s(timed) / timed.span_s
            label, help = (
                (f"{met.workers} workers load its batches", "raise `num_workers`, or do less work per sample")
                if met.workers
                else (
                    "its batches are loaded in the training process",
                    "pass `num_workers=4` to load batches in parallel",
                )
            )
            draft = self.report(
                met.site,
                f"the training waited for batches of `{met.name}` for {share:.0%} of its time",
                run=run,
                label=label,
                help=help,
                cost=f"{_waited_s(timed):.1f} s of {timed.span_s:.1f} s were spent waiting for {timed.drawn:,} batches "
                "(measured)",
                unit="batches",
            )
            draft.count, draft.total, draft.first_step = timed.drawn, timed.drawn, None


def _waited_s(timed: LoaderTimed) -> float:
    """Return the time spent waiting for batches, without the start of workers, which is `workers-respawned`."""
    return timed.waited_s - timed.starting_s
