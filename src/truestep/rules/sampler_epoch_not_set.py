from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truestep.events import Event, HandStepped, LoaderEnded, LoaderStarted, OptimizerStepped
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import loaders
from truestep.syntax import Program, Suspicion

_ABSENT = "no training on a loader with a sampler that shuffles by its epoch"


@dataclass(slots=True)
class _Pass:
    epoch: int
    steps: int = 0


class SamplerEpochNotSet(Rule):
    """A distributed sampler shuffles every epoch in the same order.

    What it does
    ------------
    Reads the epoch of samplers that shuffle by it, such as ``DistributedSampler(shuffle=True)``, at the start of each
    pass. Reports a second complete pass with training in the same epoch.

    Why it matters
    --------------
    The order of such a sampler depends on its seed and its epoch only. Each epoch has the same batches in the same
    order, and each rank the same part of the data. Samples at the end of the order that do not fill a batch are never
    trained on with ``drop_last=True``: in the proof, 36 % of the data, and the accuracy is 0.65 instead of 0.68.

    Example
    -------
    ::

        sampler = DistributedSampler(data, shuffle=True)
        loader = DataLoader(data, batch_size=64, sampler=sampler)
        for epoch in range(20):
            for inputs, labels in loader:       # the order of epoch 0, twenty times
                ...

    Fix
    ---
    Set the epoch before each pass::

        for epoch in range(20):
            sampler.set_epoch(epoch)
            for inputs, labels in loader:
                ...

    Known false alarms
    ------------------
    One order for all epochs on purpose. Not reported: samplers with ``shuffle=False``, passes that are left early,
    passes without optimizer steps, and samplers that change their epoch themselves.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    """

    id = "sampler-epoch-not-set"
    since = "0.1"
    severity = Severity.WARNING
    account = "samples"
    watches = (HandStepped, LoaderEnded, LoaderStarted, OptimizerStepped)
    needs = (LoaderStarted,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return loaders.sampler_epoch_not_set(program)

    def __init__(self) -> None:
        super().__init__()
        self._passes: dict[int, _Pass] = {}
        self._latest: dict[int, int] = {}
        """Loader to the epoch of its latest complete pass with training."""
        self._equal: dict[int, int] = {}
        """Loader to the number of passes in the same epoch."""
        self._compared = False

    def unobserved(self, run: Progress) -> str:
        return "" if self._compared else _ABSENT

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LoaderStarted(epoch=-1):
                self._passes.pop(event.loader, None)
            case LoaderStarted():
                self._passes[event.loader] = _Pass(event.epoch)
            case LoaderEnded():
                self._ended(event.loader, run)
            case _:
                for passed in self._passes.values():
                    passed.steps += 1

    def _ended(self, loader: int, run: Progress) -> None:
        passed = self._passes.pop(loader, None)
        if passed is None or not passed.steps:
            return
        before = self._latest.get(loader)
        self._latest[loader] = passed.epoch
        if before is None:
            return
        self._compared = True
        if before != passed.epoch:
            self._equal.pop(loader, None)
            return
        passes = self._equal[loader] = self._equal.get(loader, 1) + 1
        met = run.loaders[loader]
        left = 0 if not met.samples or not met.batches or not met.batch_size else (
            met.samples - met.parts * met.batches * met.batch_size
        )  # fmt: skip
        draft = self.report(
            met.site,
            f"the sampler of `{met.name}` shuffles every pass in the same order: its epoch is never set",
            run=run,
            label=f"epoch {passed.epoch} in each pass",
            help="call `sampler.set_epoch(epoch)` on the sampler before each pass",
            cost=f"the same {left} of {met.samples} samples are left out of every pass" if left > 0 else "",
            unit="passes",
            key=loader,
        )
        draft.count = draft.total = passes
