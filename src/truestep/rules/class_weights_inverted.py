from __future__ import annotations

import math
from dataclasses import dataclass, field

from truestep.events import Event, LabelsCounted, RunEnded, Site
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_LABELS = 300
_LEAST_READS = 4
_LEAST_OF_A_CLASS = 8
_LEAST_RATIO = 2.0
_TOLERANCE = 0.3
"""Largest distance between the logarithms of a weight and of the count that it follows."""
_ROUND = 1e-4
_OF_IMPORTANCE = 0.05
"""Distance from one of the mean weight of a label, within which weights correct the shares of a sample."""
_OF_ROOTS = 0.12
"""The same for the root of a count, which other weights are near to by chance."""


@dataclass(slots=True)
class _Counted:
    """The labels of a weighted loss."""

    event: LabelsCounted
    counts: list[int] = field(default_factory=list)
    labels: int = 0
    """Labels of one column for a binary loss, else all labels."""
    reads: int = 0
    constant: bool = True
    """Whether the weights have stayed the same."""


class ClassWeightsInverted(Rule):
    """The weights of a loss are proportional to the frequencies of the classes, so that frequent ones count more.

    What it does
    ------------
    Counts the labels of cross entropy with ``weight`` and of binary cross entropy with ``pos_weight`` at sampled
    steps. Reports weights that follow these counts, instead of their inverse, to within a third, if one class is twice
    as frequent as another one or more. ``pos_weight`` follows them if it is the number of positive labels divided by
    that of negative ones. The same is reported for the roots of these counts, to within an eighth, if one class is four
    times as frequent as another one or more.

    Why it matters
    --------------
    Weights are to make up for rare classes, and these double the imbalance: the model hardly predicts a rare class.
    In the proof, the mean recall of five classes is 0.64 instead of 0.86; with roots it is 0.78 instead of 0.85.

    Example
    -------
    ::

        weight = torch.bincount(labels) / len(labels)
        criterion = nn.CrossEntropyLoss(weight=weight)
        criterion = nn.BCEWithLogitsLoss(pos_weight=positives / negatives)

    Fix
    ---
    Divide by the counts::

        weight = len(labels) / torch.bincount(labels)
        criterion = nn.BCEWithLogitsLoss(pos_weight=negatives / positives)

    Known false alarms
    ------------------
    Costs of errors that happen to be those of the frequencies. Not reported: other weights, such as those of
    effective numbers or a low weight of the background, weights that change in the run, and labels that a sampler
    balances, and weights with a mean of one over the labels: they correct the shares of a sample to others.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    id = "class-weights-inverted"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    confidence = Confidence.MEDIUM
    watches = (LabelsCounted,)
    needs = (LabelsCounted,)

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[tuple[Site | None, str, int], _Counted] = {}

    def observe(self, event: Event, run: Progress) -> None:
        self._add(event, 1)

    def again(self, event: Event, times: int) -> None:
        self._add(event, times)

    def _add(self, event: Event, times: int) -> None:
        if not isinstance(event, LabelsCounted) or not event.counts:
            return
        key = event.site, event.kind, event.classes
        known = self._counted.setdefault(key, _Counted(event, [0] * len(event.counts)))
        known.constant = known.constant and known.event.weights == event.weights
        known.counts = [before + times * now for before, now in zip(known.counts, event.counts, strict=True)]
        binary = event.kind.startswith("binary")
        known.labels += times * (event.labels // len(event.counts) if binary else event.labels)
        known.reads += times

    def ended(self, event: RunEnded, run: Progress) -> None:
        for known in self._counted.values():
            if known.constant and known.reads >= _LEAST_READS and known.labels >= _LEAST_LABELS:
                self._judge(known, run)

    def _judge(self, known: _Counted, run: Progress) -> None:
        first = known.event
        binary = first.kind.startswith("binary")
        counts = known.counts
        others = [known.labels - count for count in counts]
        if min(counts) < _LEAST_OF_A_CLASS or (binary and min(others) < _LEAST_OF_A_CLASS) or min(first.weights) <= 0:
            return
        if binary:
            shares = [math.log(count / other) for count, other in zip(counts, others, strict=True)]
            weights = [math.log(weight) for weight in first.weights]
            ratio = math.exp(min(abs(share) for share in shares))
        else:
            shares = _centred([math.log(count) for count in counts])
            weights = _centred([math.log(weight) for weight in first.weights])
            ratio = math.exp(max(shares) - min(shares))
        follows = ratio >= _LEAST_RATIO and _are_near(shares, weights, _TOLERANCE)
        halves = [share / 2 for share in shares]
        roots = ratio >= _LEAST_RATIO**2 and _are_near(halves, weights, _OF_ROOTS)
        if not follows and not (roots and not _is_chosen(first.weights)):
            return
        if not binary and _corrects(first.weights, counts):
            return
        if binary:
            share = counts[0] / known.labels
            what = "" if follows else "the root of "
            message = f"`pos_weight` is {what}the number of positive labels divided by that of negative ones"
            label = f"{share:.0%} of the labels are positive, and their factor is {first.weights[0]:g}"
            help = "set `pos_weight` to the number of negative labels divided by that of positive ones"
        else:
            often, seldom = counts.index(max(counts)), counts.index(min(counts))
            message = f"the weights of the classes follow {'' if follows else 'the roots of '}their frequencies"
            label = (
                f"class {often}: {counts[often]} labels, weight {first.weights[often]:g}; class {seldom}: "
                f"{counts[seldom]} labels, weight {first.weights[seldom]:g}"
            )
            help = "divide by the counts of the classes, not by their inverse"
        draft = self.report(
            first.site,
            message,
            run=run,
            label=label,
            cost="the imbalance of the labels counts twice",
            help=help,
            unit="losses read",
        )
        draft.count = draft.total = known.reads
        draft.first_step = None


def _corrects(weights: tuple[float, ...], counts: list[int]) -> bool:
    """Return True for weights with a mean of one over the labels: shares elsewhere, divided by those of the labels.

    >>> _corrects((1.44, 1.08, 0.78, 0.57, 0.45), [32, 25, 18, 14, 11])
    True
    >>> _corrects((0.32, 0.25, 0.18, 0.14, 0.11), [32, 25, 18, 14, 11])
    False
    """
    mean = sum(weight * count for weight, count in zip(weights, counts, strict=True)) / sum(counts)
    return abs(mean - 1) < _OF_IMPORTANCE


def _is_chosen(weights: tuple[float, ...]) -> bool:
    """Return True for one factor, or two weights, with a round ratio: it can be near a root by chance."""
    if len(weights) > 2:
        return False
    ratio = weights[0] / (weights[1] if len(weights) > 1 else 1.0)
    return any(abs(one - round(one, 2)) <= _ROUND * one for one in (ratio, 1 / ratio))


def _are_near(some: list[float], others: list[float], tolerance: float) -> bool:
    return all(abs(one - other) <= tolerance for one, other in zip(some, others, strict=True))


def _centred(values: list[float]) -> list[float]:
    """Return values minus their mean: weights of classes count by their ratios."""
    mean = sum(values) / len(values)
    return [value - mean for value in values]
