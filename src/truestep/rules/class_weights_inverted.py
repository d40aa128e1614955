from __future__ import annotations

import math
from dataclasses import dataclass, field

from truestep.events import Event, LabelsCounted, LoaderMet, RunEnded, Site
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_LABELS = 300
_LEAST_READS = 4
_LEAST_OF_A_CLASS = 8
_LEAST_RATIO = 2.0
_TOLERANCE = 0.3
"""Largest distance between the logarithms of a weight and of the count that it follows."""
_OF_FACTORS = 0.1
"""The same for a factor of positive labels, beside the chance of the labels that were seen."""
_SPREAD = 2.5
_LEAST_COLUMNS = 2
_MOST_CHOSEN = 3
"""Different factors that people choose for columns."""
_WRITTEN = 2e-7
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
    """Labels of one factor for a binary loss, else all labels."""
    rows: int = 0
    reads: int = 0
    constant: bool = True
    """Whether the weights have stayed the same."""


@dataclass(frozen=True, slots=True)
class _Column:
    """The labels that one factor of positive labels acts on."""

    positive: int
    negative: int
    factor: float

    @property
    def is_read(self) -> bool:
        """Return True if there are enough labels of both kinds."""
        return min(self.positive, self.negative) >= _LEAST_OF_A_CLASS

    @property
    def may_follow(self) -> bool:
        """Return True if the factor can be the ratio of these labels, as far as they were seen."""
        if self.is_read:
            return self.factor > 0
        bound = 2 * _LEAST_OF_A_CLASS / (self.positive + self.negative)
        return self.factor <= bound if self.positive < self.negative else self.factor >= 1 / bound

    @property
    def share(self) -> float:
        """Return the logarithm of the number of positive labels divided by that of negative ones."""
        return math.log(self.positive / self.negative)

    @property
    def distance(self) -> float:
        return abs(math.log(self.factor) - self.share)

    @property
    def distance_of_root(self) -> float:
        return abs(math.log(self.factor) - self.share / 2)

    def tolerance(self, spread: float) -> float:
        """Return the largest distance of a factor that follows the labels of the whole data.

        Args:
            spread: allowed error of the logarithm for as many rows, before the share of positive labels is counted in.
        """
        part = self.positive / (self.positive + self.negative)
        return _OF_FACTORS + spread / math.sqrt(part * (1 - part))


class ClassWeightsInverted(Rule):
    """The weights of a loss are proportional to the frequencies of the classes, so that frequent ones count more.

    What it does
    ------------
    Counts the labels of cross entropy with ``weight`` and of binary cross entropy with ``pos_weight`` at sampled
    steps. Reports weights that follow these counts, instead of their inverse, to within a third, if one class is twice
    as frequent as another one or more. ``pos_weight`` follows them if it is the number of positive labels divided by
    that of negative ones, to within a tenth and the chance of the labels that were seen: one value for all labels, or
    one for each column, if two columns or all are uneven. Columns with fewer than 8 labels of a kind must not
    contradict. The same is reported for the roots of these counts, to within an eighth, if one class is four times as
    frequent as another one or more.

    Reports a ``WeightedRandomSampler`` with weights in proportion to the number of samples of each class, which the
    data set holds, if one class is twice as frequent as another one or more.

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
        sampler = WeightedRandomSampler(counts[labels], num_samples=len(labels))

    Fix
    ---
    Divide by the counts::

        weight = len(labels) / torch.bincount(labels)
        criterion = nn.BCEWithLogitsLoss(pos_weight=negatives / positives)

    Known false alarms
    ------------------
    Costs of errors that happen to be those of the frequencies. Not reported: other weights, such as those of effective
    numbers or a low weight of the background, up to three factors of four digits or less, such as 0.5 or 0.3712, since
    they are chosen, weights that change in the run, labels that a sampler balances, and weights with a mean of one over
    the labels: they correct the shares of a sample to others.

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
    watches = (LabelsCounted, LoaderMet)
    needs = (LabelsCounted,)

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[tuple[Site | None, str, int], _Counted] = {}

    def observe(self, event: Event, run: Progress) -> None:
        self._add(event, 1)
        if isinstance(event, LoaderMet) and event.counts[0]:
            most, least = event.counts
            draft = self.report(
                event.site,
                "the weights of a sampler follow the frequencies of the classes",
                run=run,
                label=f"{most:,} samples are drawn {(most / least) ** 2:,.0f} times as often as {least:,} others",
                cost="the imbalance of the labels counts twice",
                help="divide by the counts of the classes, not by their inverse",
                unit="loaders",
                key=("sampler", event.site),
            )
            draft.first_step = None

    def again(self, event: Event, times: int) -> None:
        self._add(event, times)

    def _add(self, event: Event, times: int) -> None:
        if not isinstance(event, LabelsCounted) or not event.counts:
            return
        key = event.site, event.kind, len(event.counts)
        known = self._counted.setdefault(key, _Counted(event, [0] * len(event.counts)))
        known.constant = known.constant and known.event.weights == event.weights
        known.counts = [before + times * now for before, now in zip(known.counts, event.counts, strict=True)]
        binary = event.kind.startswith("binary")
        known.labels += times * (event.labels // len(event.counts) if binary else event.labels)
        known.rows += times * event.rows
        known.reads += times

    def ended(self, event: RunEnded, run: Progress) -> None:
        for known in self._counted.values():
            if known.constant and known.reads >= _LEAST_READS and known.labels >= _LEAST_LABELS:
                if known.event.kind.startswith("binary"):
                    self._judge_factors(known, run)
                else:
                    self._judge(known, run)

    def _judge(self, known: _Counted, run: Progress) -> None:
        """Report weights of classes that follow the counts of their labels, or the roots of these."""
        first, counts = known.event, known.counts
        if min(counts) < _LEAST_OF_A_CLASS or min(first.weights) <= 0:
            return
        shares = _centred([math.log(count) for count in counts])
        weights = _centred([math.log(weight) for weight in first.weights])
        ratio = math.exp(max(shares) - min(shares))
        follows = ratio >= _LEAST_RATIO and _are_near(shares, weights, _TOLERANCE)
        roots = ratio >= _LEAST_RATIO**2 and _are_near([share / 2 for share in shares], weights, _OF_ROOTS)
        if not follows and not (roots and not _is_chosen(first.weights)):
            return
        if _corrects(first.weights, counts):
            return
        often, seldom = counts.index(max(counts)), counts.index(min(counts))
        label = (
            f"class {often}: {counts[often]} labels, weight {first.weights[often]:g}; class {seldom}: "
            f"{counts[seldom]} labels, weight {first.weights[seldom]:g}"
        )
        message = f"the weights of the classes follow {'' if follows else 'the roots of '}their frequencies"
        self._found(known, run, message, label, "divide by the counts of the classes, not by their inverse")

    def _judge_factors(self, known: _Counted, run: Progress) -> None:
        """Report factors that are the number of positive labels divided by that of negative ones, or its root."""
        factors = known.event.weights
        columns = [_Column(count, known.labels - count, one) for count, one in zip(known.counts, factors, strict=True)]
        judged = [one for one in columns if one.is_read]
        if 2 * len(judged) < len(columns) or not all(one.may_follow for one in columns):
            return
        if len(set(factors)) <= _MOST_CHOSEN and all(map(_is_round, factors)):
            return  # it is near a ratio of labels by chance
        uneven = [one for one in judged if abs(one.share) >= math.log(_LEAST_RATIO)]
        if len(uneven) < min(len(judged), _LEAST_COLUMNS):
            return
        spread = _SPREAD / math.sqrt(known.rows)
        near = sum(one.distance <= min(_TOLERANCE, one.tolerance(spread)) for one in uneven)
        follows = near >= min(len(judged), _LEAST_COLUMNS) and all(
            one.distance <= one.tolerance(spread) for one in judged
        )
        ratio = math.exp(min(abs(one.share) for one in uneven))
        roots = ratio >= _LEAST_RATIO**2 and all(one.distance_of_root <= _OF_ROOTS for one in judged)
        if not follows and not (roots and not _is_chosen(factors)):
            return
        most = max(judged, key=lambda one: abs(one.share))
        label = f"{most.positive / known.labels:.0%} of the labels are positive, and their factor is {most.factor:.4g}"
        if len(columns) > 1:
            label = f"column {columns.index(most)}: {label}"
        what = "" if follows else "the root of "
        message = f"`pos_weight` is {what}the number of positive labels divided by that of negative ones"
        help = "set `pos_weight` to the number of negative labels divided by that of positive ones"
        self._found(known, run, message, label, help)

    def _found(self, known: _Counted, run: Progress, message: str, label: str, help: str) -> None:
        draft = self.report(
            known.event.site,
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


def _is_round(factor: float) -> bool:
    """Return True for a factor of four digits, or one divided by two digits: it was hardly computed from counts.

    >>> _is_round(0.25), _is_round(0.3333333), _is_round(0.3712), _is_round(0.2716535)
    (True, True, True, False)
    """
    return factor > 0 and any(
        abs(one - float(f"{one:.{digits}g}")) <= _WRITTEN * one for one, digits in ((factor, 4), (1 / factor, 2))
    )


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
