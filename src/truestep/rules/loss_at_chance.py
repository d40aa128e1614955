"""Evidence from the values of the loss: at the end it is that of guesses with the frequencies of the labels."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from truestep.events import ClassesTrained, Event, LossRead, OptimizerStepped, RunEnded, Site, TargetsTrained
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
_NEAR, _NEAR_OF_SUMS = 0.97, 0.99
"""Least share of the cross entropy of guesses; of a squared error or a binary loss, with inputs that tell little."""
_LOWEST, _FARTHEST = 0.8, 1.2
"""Least share at any of the last values, and greatest share of their mean."""
_PART = 3
"""The last third of the values is compared."""
_FUNCTIONS = ("NllLoss", "MseLoss", "BinaryCrossEntropy")
_SQUARED = "mse_loss"
_DRAWN = ((0.0, 1.0), (0.5, 1 / math.sqrt(12)))
"""Mean and standard deviation of drawn numbers."""
_HEAVY = 8.0
"""Kurtosis of targets, 3 for normal ones, from which a few outliers can be most of a squared error."""
_KNOWN = ("how frequent each class is", "the mean of all targets")


_REPEATED = Condition(
    f"fewer than {_LEAST_PASSES} passes over the data", lambda run: run.samples.repeats >= _LEAST_PASSES
)


@dataclass(slots=True)
class _Line:
    """The losses of one line of backward passes, and the targets of these losses."""

    values: list[float] = field(default_factory=list)
    targets: list[ClassesTrained | TargetsTrained] = field(default_factory=list)
    """Those of each value."""


class LossAtChance(Rule):
    """After several passes over the data, the loss is that of guesses: the model has learned nothing.

    What it does
    ------------
    Compares the values of a cross entropy at sampled steps with the loss of guesses at the same targets: of a model
    that knows how frequent each class is, and nothing of the input. For a squared error this is the loss of the mean of
    the targets. Reports a loss with a mean over the last third of these values close to it (97 to 120 %, and from 99 %
    on for a squared error or a binary loss; no value below 80 %), after at least 150 steps and 8 passes of one
    optimizer over a ``DataLoader`` or a table that a variable holds. The confidence is low from 60 steps and 3 passes
    on, and for the squared error of targets that look drawn by ``torch.randn`` or ``torch.rand``, or of which a few are
    far from all others.

    Why it matters
    --------------
    A model with as few as some hundred parameters begins to remember samples within a few passes. One that does not
    gets inputs without the information (labels in another order than the inputs, inputs that were scaled or rounded
    away, noise to predict that is drawn again), no signal (a learning rate far too small, units that are dead), or
    another task than was meant. The loss falls from its first value to this one, which looks like progress. In the
    proof, inputs and labels are shuffled each in its own order: the accuracy is 0.20 instead of 1.00.

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
    Targets that are random on purpose, as in a measurement of speed, or that the inputs hardly determine, as returns
    of shares. Runs that end while a deep network is still on its first plateau. Not reported: losses that still fall
    and are below that of guesses in the last read, losses that are multiplied or weighted, written by hand or computed
    at several lines, labels of one class, data that are generated again for each step.

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
    watches = (LossRead, ClassesTrained, TargetsTrained, OptimizerStepped)
    needs = (LossRead, _REPEATED, FINISHED)

    def __init__(self) -> None:
        super().__init__()
        self._latest: ClassesTrained | TargetsTrained | None = None
        self._lines: dict[Site | None, _Line] = {}

    def unobserved(self, run: Progress) -> str:
        reads = max((len(line.values) for line in self._lines.values()), default=0)
        if not reads:
            return super().unobserved(run) or "no cross entropy, squared error or binary loss with targets to count"
        few = "" if reads >= _LEAST_READS and run.step >= _LEAST_STEPS else f"fewer than {_LEAST_STEPS} steps"
        return super().unobserved(run) or few

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LossRead() if event.root.startswith(_FUNCTIONS) and not event.scaled:
                line = self._lines.setdefault(event.site, _Line())
                if self._latest is not None:
                    line.values.append(event.value)
                    line.targets.append(self._latest)
                self._latest = None
            case ClassesTrained() | TargetsTrained():
                self._latest = event

    def ended(self, event: RunEnded, run: Progress) -> None:
        trainings = max(1, len(run.optimizers))
        steps, passes = run.step // trainings, run.samples.repeats // trainings
        if event.how != "finished" or len(self._lines) != 1 or len(run.losses.lines) != 1:
            return
        ((site, line),) = self._lines.items()
        places = {(one.kind, one.site) for one in line.targets}
        weighted = any(reduction != "mean" for *_, reduction in run.losses.tally)
        if steps < _LEAST_STEPS or passes < _LEAST_PASSES or len(places) != 1 or weighted:
            return
        if len(line.values) < _LEAST_READS or sum(map(_rows, line.targets)) < _LEAST_LABELS:
            return
        chances = _guesses(line.targets)
        part = len(line.values) // _PART
        before = sum(line.values[-2 * part : -part]) / part
        values, chances = line.values[-part:], chances[-part:]
        chance, last = sum(chances) / part, sum(values) / part
        ((kind, loss),) = places
        near = _NEAR_OF_SUMS if isinstance(line.targets[-1], TargetsTrained) else _NEAR
        least = 0.0 if kind == _SQUARED else _LEAST_ENTROPY
        lowest = min(value / guess if guess else math.inf for value, guess in zip(values, chances, strict=True))
        swings = lowest < _LOWEST or last > _FARTHEST * chance  # it learns, and is thrown back
        falls = last < before and values[-1] == min(line.values) and values[-1] < near * chances[-1]
        if chance <= least or last < near * chance or swings or falls:
            return
        sure = steps >= _SURE_STEPS and passes >= _SURE_PASSES
        draft = self.report(
            loss,
            f"the loss is still that of guesses after {passes} passes over the data",
            run=run,
            label=f"{last:.3g} at the end, {chance:.3g} for {_named(line.targets[-1], len(_labels(line.targets)))}",
            related=() if site is None or site == loss else (Mark(site, "the backward pass"),),
            cost=f"{run.step:,} steps, and the model knows no more of a sample than {_KNOWN[kind == _SQUARED]}",
            confidence=Confidence.MEDIUM
            if sure and not _is_drawn(line.targets) and not _is_heavy(line.targets)
            else Confidence.LOW,
            help="look at a batch: its inputs must belong to its targets, and differ from each other",
            unit="sampled losses",
        )
        draft.count = draft.total = len(line.values)
        draft.first_step = None


def _guesses(targets: list[ClassesTrained | TargetsTrained]) -> list[float]:
    """Return the loss of guesses at each of several batches, by the targets of all of them."""
    labels = _labels(targets)
    shares = {label: count / labels.total() for label, count in labels.items()}
    sums = [one for one in targets if isinstance(one, TargetsTrained)]
    rows = sum(one.rows for one in sums)
    means = [sum(column) / rows for column in zip(*(one.sums for one in sums), strict=False)]
    return [
        _of_classes(dict(one.labels), shares) if isinstance(one, ClassesTrained) else _of_columns(one, means)
        for one in targets
    ]


def _of_classes(labels: dict[int, int], shares: dict[int, float]) -> float:
    total = sum(labels.values())
    return -sum(count * math.log(shares[label]) for label, count in labels.items()) / total if total else 0.0


def _of_columns(one: TargetsTrained, means: list[float]) -> float:
    """Return the loss at the means of all targets, averaged over the columns."""
    parts = []
    for mean, total, square in zip(means, one.sums, one.squares, strict=False):
        if one.kind == _SQUARED:
            parts.append(square - 2 * mean * total + one.rows * mean**2)
        elif 0 < mean < 1:
            parts.append(-total * math.log(mean) - (one.rows - total) * math.log1p(-mean))
    return sum(parts) / (one.rows * len(one.sums)) if one.rows and one.sums else 0.0


def _is_drawn(targets: list[ClassesTrained | TargetsTrained]) -> bool:
    """Return True for a squared error of targets like those of ``torch.randn`` and ``torch.rand``, as in an example."""
    sums = [one for one in targets if isinstance(one, TargetsTrained) and one.kind == _SQUARED]
    count = sum(one.rows * len(one.sums) for one in sums)
    if not count:
        return False
    mean = sum(sum(one.sums) for one in sums) / count
    spread = math.sqrt(max(0.0, sum(sum(one.squares) for one in sums) / count - mean**2))
    return any(abs(mean - at) < 0.1 and abs(spread - wide) < 0.1 * wide for at, wide in _DRAWN)


def _is_heavy(targets: list[ClassesTrained | TargetsTrained]) -> bool:
    """Return True for a squared error of which a few outliers, which no input may explain, can be the most.

    The kurtosis is estimated from the spread of the squared deviations between batches, weighted by columns' variance.
    """
    sums = [one for one in targets if isinstance(one, TargetsTrained) and one.kind == _SQUARED]
    rows = sum(one.rows for one in sums)
    if len(sums) < 2 or not rows:
        return False
    spread = variance = 0.0
    for column in zip(*(zip(one.sums, one.squares, strict=True) for one in sums), strict=False):
        mean = sum(total for total, _ in column) / rows
        of_batches = [
            (square - 2 * mean * total) / one.rows + mean**2 for one, (total, square) in zip(sums, column, strict=True)
        ]
        center = sum(of_batches) / len(sums)
        if center > 0:
            between = sum((one - center) ** 2 for one in of_batches) / (len(sums) - 1)
            spread += between * rows / len(sums) / center
            variance += center
    return variance > 0 and spread / variance + 1 > _HEAVY


def _labels(targets: list[ClassesTrained | TargetsTrained]) -> Counter[int]:
    found: Counter[int] = Counter()
    for one in targets:
        if isinstance(one, ClassesTrained):
            found.update(dict(one.labels))
    return found


def _rows(one: ClassesTrained | TargetsTrained) -> int:
    return sum(count for _, count in one.labels) if isinstance(one, ClassesTrained) else one.rows


def _named(one: ClassesTrained | TargetsTrained, classes: int) -> str:
    if isinstance(one, ClassesTrained):
        return f"guesses among {classes} classes"
    return "the mean of the targets" if one.kind == _SQUARED else "guesses with the share of positive labels"
