"""Evidence from the values of the loss: at the end it is that of guesses with the frequencies of the labels."""

from __future__ import annotations

import math
from collections import Counter

from truestep.events import ClassesTrained, Event, LossRead, OptimizerStepped, RunEnded, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, Condition
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 60
_LEAST_READS = 8
_LEAST_LABELS = 128
_LEAST_PASSES = 3
_SURE_STEPS, _SURE_PASSES = 150, 8
"""Numbers from which a model would have begun to remember its samples; below, the confidence is low."""
_LEAST_ENTROPY = 0.3
_NEAR = 0.97
"""Least share of the cross entropy of guesses."""
_LOWEST, _FARTHEST = 0.8, 1.2
"""Least share at any of the last values, and greatest share of their mean."""
_PART = 3
"""The last third of the values is compared, and the first for a trend."""


def _passes(run: Progress) -> int:
    return max((run.samples.tally["trained", loader] for loader in run.samples.trained), default=0)


_REPEATED = Condition(
    f"fewer than {_LEAST_PASSES} passes over the data of a DataLoader", lambda run: _passes(run) >= _LEAST_PASSES
)


class LossAtChance(Rule):
    """After several passes over the data, the cross entropy is that of guesses: the model has learned nothing.

    What it does
    ------------
    Compares the values of a cross entropy at sampled steps with the entropy of the labels at these steps, which is the
    loss of a model that knows how frequent each class is, and nothing of the input. Reports a loss with a mean over the
    last third of these values close to it (97 to 120 %, no value below 80 %), after at least 150 steps and 8 passes
    over a ``DataLoader``; with low confidence from 60 steps and 3 passes on.

    Why it matters
    --------------
    A model with as few as some hundred parameters begins to remember samples within a few passes. One that does not
    gets inputs without the information (labels in another order than the inputs, inputs that were scaled or rounded
    away), no signal (a learning rate far too small, units that are dead), or another task than was meant. The loss
    falls from its first value to this one, which looks like progress. In the proof, inputs and labels are shuffled
    each in its own order: the accuracy is 0.20 instead of 1.00.

    Example
    -------
    ::

        order = torch.randperm(len(x))
        dataset = TensorDataset(x[order], y)            # y in the old order

    Fix
    ---
    ::

        dataset = TensorDataset(x[order], y[order])

    Known false alarms
    ------------------
    Labels that are random on purpose, as in a measurement of speed. Runs that end while a deep network is still on its
    first plateau. Not reported: losses that are multiplied or weighted, labels of one class, training without a
    DataLoader.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://karpathy.github.io/2019/04/25/recipe/
    """

    id = "loss-at-chance"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (LossRead, ClassesTrained, OptimizerStepped)
    needs = (LossRead, ClassesTrained, _REPEATED, FINISHED)

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[Site | None, list[float]] = {}
        self._labels: dict[Site | None, Counter[int]] = {}

    def unobserved(self, run: Progress) -> str:
        reads = max(map(len, self._values.values()), default=0)
        few = "" if reads >= _LEAST_READS and run.step >= _LEAST_STEPS else f"fewer than {_LEAST_STEPS} steps"
        return super().unobserved(run) or few

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LossRead() if event.root.startswith("NllLoss") and not event.scaled:
                self._values.setdefault(event.site, []).append(event.value)
            case ClassesTrained():
                self._labels.setdefault(event.site, Counter()).update(dict(event.labels))

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished" or len(self._values) != 1 or len(self._labels) != 1:
            return
        if run.step < _LEAST_STEPS or _passes(run) < _LEAST_PASSES or len(run.losses.lines) != 1:
            return
        ((site, values),) = self._values.items()
        ((loss, labels),) = self._labels.items()
        weighted = any(reduction != "mean" for *_, reduction in run.losses.tally)
        if len(values) < _LEAST_READS or labels.total() < _LEAST_LABELS or weighted:
            return
        chance, part = _entropy(labels), len(values) // _PART
        last = sum(values[-part:]) / part
        swings = min(values[-part:]) < _LOWEST * chance or last > _FARTHEST * chance  # it learns, and is thrown back
        if chance < _LEAST_ENTROPY or last < _NEAR * chance or swings:
            return
        draft = self.report(
            loss,
            f"the loss is still that of guesses after {_passes(run)} passes over the data",
            run=run,
            label=f"{last:.3g} at the end, {chance:.3g} for guesses among {len(labels)} classes",
            related=() if site is None or site == loss else (Mark(site, "the backward pass"),),
            cost=f"{run.step:,} steps, and the model knows no more of a sample than how frequent each class is",
            confidence=Confidence.MEDIUM
            if run.step >= _SURE_STEPS and _passes(run) >= _SURE_PASSES
            else Confidence.LOW,
            help="look at a batch: its inputs must belong to its labels, and differ from each other",
            unit="sampled losses",
        )
        draft.count = draft.total = len(values)


def _entropy(labels: Counter[int]) -> float:
    total = labels.total()
    return -sum(count / total * math.log(count / total) for count in labels.values() if count)
