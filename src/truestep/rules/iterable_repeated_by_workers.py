from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BatchRead, Event, LoaderStarted
from truestep.findings import Severity
from truestep.rules._repeats import Repeats
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import workers
from truestep.syntax import Program, Suspicion


class IterableRepeatedByWorkers(Rule):
    """Every worker of a DataLoader reads the whole IterableDataset, so each sample comes once per worker.

    What it does
    ------------
    Compares some of the first batches of a DataLoader over an ``IterableDataset`` with several workers. Batches come
    from the workers in turn. The workers give the same samples if the first batches of two workers are equal, their
    second batches are equal too, and the first differs from the second.

    Why it matters
    --------------
    With N workers an epoch is N times longer but has no new data: each batch is trained on N times in a row. With a
    fixed number of steps, only a part of the data is ever used: in the proof four workers cost six points of accuracy.

    Example
    -------
    ::

        class Lines(IterableDataset):
            def __iter__(self):
                yield from open(self.path)          # every worker reads from the first line

        loader = DataLoader(Lines(), batch_size=32, num_workers=4)

    Fix
    ---
    Give each worker a different share::

        class Lines(IterableDataset):
            def __iter__(self):
                info = get_worker_info()
                first, step = (info.id, info.num_workers) if info else (0, 1)
                yield from itertools.islice(open(self.path), first, None, step)

    Known false alarms
    ------------------
    None known. Streams of random samples differ between workers and are not reported, unless all workers draw from
    identical generators. If samples are augmented at random, the repetition is not detected.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset
    """

    id = "iterable-repeated-by-workers"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (BatchRead, LoaderStarted)
    needs = (BatchRead,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return workers.iterable_repeated_by_workers(program)

    def __init__(self) -> None:
        super().__init__()
        self._repeats = Repeats(iterable=True)

    def unobserved(self, run: Progress) -> str:
        read = "no DataLoader with workers over an IterableDataset gave two batches per worker"
        return super().unobserved(run) or ("" if self._repeats.compared else read)

    def observe(self, event: Event, run: Progress) -> None:
        met = self._repeats.found(event, run)
        if met is None:
            return
        self.report(
            met.site,
            f"{met.workers} workers of `{run.loader_name(met.loader)}` each give the same samples",
            run=run,
            label=f"each worker reads the whole `{met.dataset_kind}`",
            help="give each worker a different share in `__iter__`, by `torch.utils.data.get_worker_info()`",
            cost=f"each batch comes {met.workers} times in a pass",
            unit="passes read",
            key=met.dataset,
        )
