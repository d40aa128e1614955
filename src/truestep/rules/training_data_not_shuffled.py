from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from truestep.events import BatchRead, Event, HandStepped, LoaderEnded, LoaderStarted, OptimizerStepped
from truestep.findings import Severity
from truestep.rules._conditions import TRAINED_ON_LOADER
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import loaders
from truestep.syntax import Program, Suspicion

_LEAST_BATCHES = 4
"""Least number of batches read in a pass; rising labels in fewer can be chance."""
_LEAST_PASSES = 2


@dataclass(slots=True)
class _Pass:
    """One pass over a loader: the labels of the batches that were read in it."""

    sorted: bool = True
    labels: list[tuple[int, ...]] = field(default_factory=list)
    """First label, last label and number of different labels of each of these batches."""
    stepped: int = 0
    """Number of these batches after which an optimizer stepped before the next one was read."""
    waits: bool = False


class TrainingDataNotShuffled(Rule):
    """Training batches come in the order of a data set that is sorted by class.

    What it does
    ------------
    Reads the labels of some batches, spread over the first passes of each DataLoader. Reports a loader with torch's
    ``SequentialSampler`` (no ``shuffle=True``) if its labels never decrease from the first batch read to the last, in
    two passes, while an optimizer steps between these batches.

    Why it matters
    --------------
    For many steps the model sees only one class, learns to predict it, and forgets the others. In the proof the final
    accuracy is 0.38 instead of 0.81. With Adam and small steps less is lost: two points on the same data.

    Example
    -------
    ::

        train_data = ImageFolder("train")                   # all cats, then all dogs
        loader = DataLoader(train_data, batch_size=32)      # read in this order

    Fix
    ---
    Let the loader draw a new order for every epoch::

        loader = DataLoader(train_data, batch_size=32, shuffle=True)

    Known false alarms
    ------------------
    Classes that are learned one after another on purpose, several times, from one loader. Not reported: single passes
    over a stream, custom samplers, IterableDatasets, data in order of time, and data that was shuffled before.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#data-loading-order-and-sampler
    """

    id = "training-data-not-shuffled"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (BatchRead, HandStepped, LoaderEnded, LoaderStarted, OptimizerStepped)
    needs = (BatchRead, TRAINED_ON_LOADER)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return loaders.training_data_not_shuffled(program)

    def __init__(self) -> None:
        super().__init__()
        self._passes: dict[int, _Pass] = {}
        """Loader to its current pass."""
        self._sorted: dict[int, int] = {}
        """Dataset to the number of sorted passes over it."""
        self._labelled = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._labelled else "no batch with one label for each sample")

    def suspected(self) -> bool:
        return super().suspected() or bool(self._sorted)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LoaderStarted():
                self._passes.pop(event.loader, None)
                met = run.loaders.get(event.loader)
                if met is not None and met.sampler == "sequential" and not met.iterable:
                    self._passes[event.loader] = _Pass()
            case BatchRead():
                self._labelled |= event.labelled
                if event.loader in self._passes:
                    self._read(event, self._passes[event.loader])
            case LoaderEnded():
                self._ended(event.loader, run)
            case _:
                for passed in self._passes.values():
                    passed.stepped += passed.waits
                    passed.waits = False

    def _read(self, event: BatchRead, passed: _Pass) -> None:
        latest = passed.labels[-1][1] if passed.labels else None
        passed.waits = True
        if not event.labels or (latest is not None and latest > event.labels[0]):
            passed.sorted = False
        elif passed.sorted:
            passed.labels.append(event.labels)

    def _ended(self, loader: int, run: Progress) -> None:
        passed = self._passes.pop(loader, None)
        if passed is None or not passed.sorted or len(passed.labels) < _LEAST_BATCHES:
            return
        if passed.stepped < _LEAST_BATCHES - 1 or passed.labels[0][0] == passed.labels[-1][1]:
            return
        met = run.loaders[loader]
        self._sorted[met.dataset] = passes = self._sorted.get(met.dataset, 0) + 1
        if passes < _LEAST_PASSES:
            return
        kinds = max(labels[2] for labels in passed.labels)
        held = "one class" if kinds == 1 else f"at most {kinds} classes"
        draft = self.report(
            met.site,
            f"`{run.loader_name(loader)}` reads the training data class by class, in the order of the data set",
            run=run,
            label=f"labels rise from {passed.labels[0][0]} to {passed.labels[-1][1]} over a pass",
            help="pass `shuffle=True` to the training `DataLoader`",
            cost=f"each of the {len(passed.labels)} batches read in a pass has {held}",
            unit="passes read",
            key=met.dataset,
        )
        if draft.count == 1:
            draft.count = passes
