"""Number of scheduler steps, compared with the updates and the passes over the data."""

from __future__ import annotations

from dataclasses import dataclass

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    LoaderEnded,
    LoaderStarted,
    OptimizerStepped,
    SchedulerStepped,
    Site,
)
from truestep.rules._rule import Progress


@dataclass(slots=True)
class ScheduleCounts:
    """Counts for one schedule."""

    scheduler: int
    site: Site | None
    first_step: int
    steps: int = 0
    by_epoch: bool = False
    """Whether `step()` received an epoch or a metric."""
    died_at_once: bool = False
    """Whether the learning rate became negligible within the first pass over the data."""
    vanished: int = 0
    """Number of latest steps in a row that came after an update and left a negligible learning rate."""
    negative: int = 0
    """Number of steps that came after an update and left the learning rate below 0."""
    warming: int = 0
    """Number of steps that left the learning rate rising and at most at a tenth."""

    def add(self, event: SchedulerStepped, times: int) -> None:
        """Count a scheduler step that came ``times`` times."""
        self.steps += times
        trained = times if event.optimizer_steps else 0
        self.vanished = self.vanished + trained if event.rate == "vanished" else 0
        self.negative += trained if event.rate == "negative" else 0
        self.warming += times if event.rate == "warming" else 0


class RunCounts:
    """Counters of a run: updates, passes over the training loader, and scheduler steps."""

    def __init__(self) -> None:
        self.paces: dict[int, ScheduleCounts] = {}
        self.updates: dict[int | None, int] = {}
        self._loader: int | None = None
        self._passes: dict[int, int] = {}
        self._drawn: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def observe(self, event: Event, run: Progress) -> None:
        """Update the counters with one event."""
        if isinstance(event, BackwardEnded) and not event.in_step:
            self._trained_on(event.loader)
        elif isinstance(event, SchedulerStepped):
            pace = self.paces.get(event.scheduler)
            if pace is None:
                self.paces[event.scheduler] = pace = ScheduleCounts(event.scheduler, event.site, run.step)
            pace.site = event.site
            pace.by_epoch |= event.epoch_argument or bool(event.metric)
        self.count(event, 1)

    def count(self, event: Event, times: int) -> None:
        """Count an event that came ``times`` times."""
        match event:
            case OptimizerStepped():
                self.updates[event.optimizer] = self.updates.get(event.optimizer, 0) + times
            case LoaderStarted():
                self._passes[event.loader] = self._passes.get(event.loader, 0) + times
            case LoaderEnded():
                self._ends[event.loader] = self._ends.get(event.loader, 0) + times
            case BatchDrawn():
                self._drawn[event.loader] = self._drawn.get(event.loader, 0) + times
            case SchedulerStepped():
                self.paces[event.scheduler].add(event, times)

    def _trained_on(self, loader: int | None) -> None:
        """Follow the passes over a loader; over another one that is read whole, if it is begun for each batch."""
        self._loader = loader
        if loader is not None and self._passes.get(loader, 0) > 2 * self._ends.get(loader, 0) + 1:
            whole = [one for one, ends in self._ends.items() if 2 * ends + 1 >= self._passes.get(one, 0)]
            self._loader = max(whole, key=lambda one: self._drawn.get(one, 0), default=loader)

    @property
    def passes(self) -> int:
        """Return the number of started passes over the training loader, 0 without a loader."""
        return 0 if self._loader is None else self._passes.get(self._loader, 0)

    @property
    def drawn(self) -> int:
        """Return the number of batches drawn from the training loader."""
        return 0 if self._loader is None else self._drawn.get(self._loader, 0)

    def batches(self, run: Progress) -> int:
        """Return the number of batches in a pass, 0 if it is unknown."""
        if self._loader is None:
            return 0
        met = run.loaders.get(self._loader)
        if met is not None and met.batches:
            return met.batches
        return self._drawn.get(self._loader, 0) // max(1, self.passes) if self._loader in self._ends else 0

    def often(self, pace: ScheduleCounts, run: Progress) -> bool:
        """Return True if the schedule is stepped many times within each pass over the data."""
        return self.batches(run) > 1 and pace.steps >= 5 * self.passes > 0

    def once(self, pace: ScheduleCounts) -> bool:
        """Return True if the schedule is stepped once per pass over the data."""
        return 0 < pace.steps <= self.passes + 1
