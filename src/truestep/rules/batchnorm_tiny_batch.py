from __future__ import annotations

from dataclasses import dataclass

from truestep.events import BackwardEnded, BatchStatisticsTaken, Event, RunEnded
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

_TINY = 2
"""Most values per channel that count as tiny; with eight, nothing is lost."""
_LEAST_LOOKS = 4
_FIRST_STEP = 10
"""Least number of steps between the first and the latest sampled step."""


@dataclass(slots=True)
class _Looks:
    """Observed batch statistics of one model."""

    latest: BatchStatisticsTaken
    count: int = 0
    step: int = 0
    """The latest observed step."""
    first_step: int = 0


class BatchnormTinyBatch(Rule):
    """Batch normalisation is trained on two values per channel.

    What it does
    ------------
    Counts, at sampled steps, the values per channel behind the statistics of each batch normalisation layer in train
    mode: samples times positions. At the end of the run, reports models in which no such layer had more than two values
    per channel in any sampled step.

    Why it matters
    --------------
    Two values always become 1 and -1: only their order is left. In evaluation, the running statistics produce values
    that the next layers were never trained on. In the proof the net reaches an accuracy of 0.40, and 0.67 with
    `LayerNorm`. With eight values nothing is lost.

    Example
    -------
    ::

        net = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
        loader = DataLoader(data, batch_size=2, shuffle=True)

    Fix
    ---
    Normalise each sample separately, or use larger batches (gradient accumulation does not help)::

        net = nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 4))

    Known false alarms
    ------------------
    None known. Not reported: a last batch of two, a layer behind global pooling if others have enough values, layers in
    eval mode, layers without running statistics, `SyncBatchNorm`, batches that grow, and overfitting one batch on
    purpose.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
    - https://arxiv.org/abs/1803.08494
    """

    id = "batchnorm-tiny-batch"
    since = "0.1"
    severity = Severity.WARNING
    account = "calls"
    watches = (BatchStatisticsTaken, BackwardEnded)
    needs = (BatchStatisticsTaken,)

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[int, _Looks] = {}
        self._enough: set[int] = set()
        """Models that had more values at some step, or that overfit one batch."""
        self._waiting: dict[int, BatchStatisticsTaken] = {}
        """Models before their next backward pass."""

    def suspected(self) -> bool:
        return super().suspected() or bool(self._looks)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BatchStatisticsTaken():
                if event.values > _TINY or event.same_input:
                    self._enough.add(event.model)
                    self._looks.pop(event.model, None)
                elif event.model not in self._enough:
                    self._waiting[event.model] = event
            case BackwardEnded():
                for model, latest in self._waiting.items():
                    if model not in self._enough:
                        self._look(model, latest, run)
                self._waiting.clear()

    def _look(self, model: int, latest: BatchStatisticsTaken, run: Progress) -> None:
        looks = self._looks.setdefault(model, _Looks(latest, first_step=run.step))
        looks.latest = latest
        looks.count += 1
        looks.step = run.step

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how not in ("finished", "exited"):
            return
        for model, looks in self._looks.items():
            if looks.count < _LEAST_LOOKS or looks.step - looks.first_step < _FIRST_STEP or 2 * looks.step < run.step:
                continue  # too little of the training was observed: batches may grow
            latest = looks.latest
            layers = f"{latest.layers} layers" if latest.layers > 1 else "one layer"
            draft = self.report(
                latest.site,
                f"the batch normalisation of `{run.model_name(model)}` is trained on two values per channel",
                run=run,
                label=f"{layers} of {latest.kind}, no more than two values per channel",
                help="use `LayerNorm` or `GroupNorm`, or give the model larger batches",
                cost="two values always become 1 and -1 in training: only their order is left",
                unit="sampled steps",
            )
            draft.count = draft.total = looks.count
            draft.first_step = looks.first_step
