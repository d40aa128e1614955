from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BatchRead, Event, LoaderStarted
from truestep.findings import Severity
from truestep.rules._repeats import Repeats
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import workers
from truestep.syntax import Program, Suspicion

_LEAST_BATCH = 4
"""Least batch size; smaller batches can be equal by chance."""
_LEAST_PASSES = 2


class WorkerRandomnessDuplicated(Rule):
    """The workers of a DataLoader draw the same random samples.

    What it does
    ------------
    Compares some of the first batches of a shuffled DataLoader with several workers. Batches come from the workers in
    turn and have different indices. The samples come from identical generators and not from the indices if, in two
    passes, the first batches of two workers are equal, their second batches are equal too, and the first differs from
    the second.

    Why it matters
    --------------
    A generator created in `__init__` is copied into every worker, and without ``persistent_workers`` again in every
    epoch. The epochs then have few different samples, which the model memorises. In the proof two workers and 12 epochs
    give 20 samples instead of 480, and a squared error of 5.6 instead of 0.4.

    Example
    -------
    ::

        class Simulated(Dataset):
            def __init__(self):
                self.rng = np.random.default_rng(0)     # every worker gets a copy of it

            def __getitem__(self, index):
                return torch.tensor(self.rng.normal(size=24))

    Fix
    ---
    Draw from torch's own generators, which differ between workers and epochs, or seed one from them::

        def own_generator(worker):
            info = torch.utils.data.get_worker_info()
            info.dataset.rng = np.random.default_rng(info.seed)

        loader = DataLoader(Simulated(), 10, shuffle=True, num_workers=4, worker_init_fn=own_generator)

    Known false alarms
    ------------------
    None known. Not detected: random changes of samples that are different anyway (noise, crops), batches of fewer than
    four samples, and unshuffled loaders, which can have repeated batches for other reasons.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#randomness-in-multi-process-data-loading
    - https://docs.pytorch.org/docs/stable/notes/randomness.html#dataloader
    """

    id = "worker-randomness-duplicated"
    since = "0.1"
    severity = Severity.ERROR
    account = "randomness"
    watches = (BatchRead, LoaderStarted)
    needs = (BatchRead,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return workers.worker_randomness_duplicated(program)

    def __init__(self) -> None:
        super().__init__()
        self._repeats = Repeats(iterable=False)
        self._passes: dict[int, int] = {}
        """Dataset to the number of passes over it with repeated batches."""

    def unobserved(self, run: Progress) -> str:
        read = "no shuffled DataLoader with workers gave two batches per worker"
        return super().unobserved(run) or ("" if self._repeats.compared else read)

    def suspected(self) -> bool:
        return super().suspected() or bool(self._passes)

    def observe(self, event: Event, run: Progress) -> None:
        met = self._repeats.found(event, run)
        if met is None or met.sampler != "random" or (met.batch_size or 0) < _LEAST_BATCH:
            return
        self._passes[met.dataset] = passes = self._passes.get(met.dataset, 0) + 1
        if passes < _LEAST_PASSES:
            return
        draft = self.report(
            met.site,
            f"{met.workers} workers of `{run.loader_name(met.loader)}` draw the same random samples",
            run=run,
            label=f"each worker has a copy of the generator of `{met.dataset_kind}`",
            help="draw from torch's generators in the data set, or give each worker a generator in `worker_init_fn`",
            cost="batches with different indices, from different workers, were equal",
            unit="passes read",
            key=met.dataset,
        )
        draft.count = passes
