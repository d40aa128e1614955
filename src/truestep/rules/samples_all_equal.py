from __future__ import annotations

from truestep.events import BatchRead, Event, LoaderMet, RowsEqualled
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import Condition
from truestep.rules._rule import Progress, Rule

_LEAST_READS = 3
_LEAST_STEPS = 4
_FEW = 10
"""Least number of samples of a data set, and of draws, for each weight of a sampler: it has one for each class."""
_READ = Condition(
    "no batch of a DataLoader, nor of a model in training, read on the CPU",
    lambda run: not run.met.isdisjoint({BatchRead, RowsEqualled}),
)


class SamplesAllEqual(Rule):
    """A batch is one sample over and over.

    What it does
    ------------
    Reads the first batches of each DataLoader on the CPU. Reports a loader with batches of one repeated sample: all
    rows of the inputs are equal, at least 8 numbers wide and not constant, while their labels differ.

    Without a loader, reads the arguments of a model in training, at sampled steps. Reports a model if all rows of all
    its inputs are equal at four sampled steps and in all others, and are another row from step to step.

    Reports a ``WeightedRandomSampler`` with at most a tenth as many weights as the data set has samples, and as it
    draws in a pass: with one weight for each class, it only draws the first samples of the data set, as many as there
    are classes.

    Why it matters
    --------------
    The model gets one input for all labels and can learn only their frequencies. In the proof, with three classes, the
    final accuracy is 0.51 instead of 1.00; the loss still falls a little. A sampler with a weight for each class trains
    on a handful of samples, which the model knows by heart after a few steps.

    Example
    -------
    ::

        buffer = np.empty(24, dtype=np.float32)
        for label in labels:
            sensor.read_into(buffer)
            samples.append(torch.from_numpy(buffer))    # the same memory every time

        sampler = WeightedRandomSampler(1 / counts, num_samples=len(labels))    # a weight for each class

    Fix
    ---
    Copy each sample before storing it; ``torch.from_numpy`` and ``torch.as_tensor`` do not copy::

        samples.append(torch.from_numpy(buffer.copy()))

    Give the sampler a weight for each sample::

        sampler = WeightedRandomSampler((1 / counts)[labels], num_samples=len(labels))

    Known false alarms
    ------------------
    A model that is trained on one sample at a time, repeated for several random draws. Not reported: constant inputs
    (all zeros, an intercept), views made by ``expand``, and batches in which any other tensor differs from row to row.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.WeightedRandomSampler
    """

    id = "samples-all-equal"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (BatchRead, LoaderMet, RowsEqualled)
    needs = (_READ,)
    explains = ("loss-at-chance",)
    asks = "the samples of a batch differ"

    def __init__(self) -> None:
        super().__init__()
        self._alike: dict[int, int] = {}
        """Loader to the number of its batches of equal samples; -1 after any other batch."""
        self._rows: dict[int, list[bool]] = {}
        """Model to the sampled steps with equal rows, True if they were another row than before; [] after others."""
        self._constant: set[int] = set()
        """Models that were called on rows of one number, which can be meant."""

    def suspected(self) -> bool:
        equal = any(self._rows.values()) or bool(self._constant)
        return super().suspected() or equal or any(reads > 0 for reads in self._alike.values())

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, RowsEqualled):
            self._called(event, run)
        if isinstance(event, LoaderMet):
            self._met(event, run)
        if not isinstance(event, BatchRead):
            return
        before = self._alike.get(event.loader, 0)
        self._alike[event.loader] = reads = before + 1 if event.alike and before >= 0 else -1
        if reads < 0:
            self.withdraw(event.loader)
        if reads < _LEAST_READS or event.loader not in run.loaders:
            return
        draft = self.report(
            run.loaders[event.loader].site,
            f"`{run.loader_name(event.loader)}` returns the same sample with different labels",
            run=run,
            label=f"all {event.alike} samples of a batch are equal",
            help="copy each sample before storing it: `torch.from_numpy(buffer.copy())`",
            cost="the inputs have no information about the labels",
            unit="batches read",
            key=event.loader,
        )
        draft.count = draft.total = reads

    def _met(self, event: LoaderMet, run: Progress) -> None:
        """Report a sampler with fewer weights than the data set has samples."""
        weights, draws = event.weights
        if not 0 < _FEW * weights <= min(draws, event.samples or 0):
            return
        draft = self.report(
            event.site,
            f"the sampler has {weights} weights, and the data set {event.samples:,} samples",
            run=run,
            label=f"draws only the first {weights} samples",
            help="give the sampler a weight for each sample: `weights[labels]`",
            cost=f"all other samples are never drawn by `{event.name}`",
            unit="loaders",
            key=("weights", event.site),
        )
        draft.first_step = None

    def _called(self, event: RowsEqualled, run: Progress) -> None:
        if event.constant:
            self._constant.add(event.model)
            return
        self._constant.discard(event.model)
        key, before = ("model", event.model), self._rows.get(event.model)
        self._rows[event.model] = steps = [*(before or []), event.moved] if event.equal and before != [] else []
        if not steps:
            self.withdraw(key)
        if len(steps) < _LEAST_STEPS or not any(steps):
            return
        draft = self.report(
            event.made or event.site,
            f"all {event.rows} samples of a batch are equal",
            run=run,
            label="makes a batch of one sample" if event.made else f"`{run.model_name(event.model)}` is called on them",
            related=(Mark(event.site, "the call"),) if event.made and event.site else (),
            help="draw another sample for each row, and copy arrays that are written again",
            cost="a batch has the information of one sample",
            confidence=Confidence.MEDIUM,
            unit="steps read",
            key=key,
        )
        draft.count = draft.total = len(steps)
