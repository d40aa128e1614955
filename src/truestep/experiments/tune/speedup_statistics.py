"""What ratios of times say: a gain, a loss, no difference, or that it cannot be told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

MARGIN = 0.03
"""Two processes that do the same thing differ by about so much, for as long as they live: nothing below is a gain."""


class Says(StrEnum):
    """What a comparison came to."""

    GAIN = "gain"
    SLOWER = "slower"
    EQUAL = "no gain"
    UNSURE = "cannot tell"


@dataclass(frozen=True, slots=True)
class Judged:
    """A speed-up, how sure it is, and what it comes to.

    Attributes:
        ratio: the median over all turns: 2 is twice as fast.
        low: lower end of the interval of the median.
        high: its upper end.
        says: what it comes to.
    """

    ratio: float
    low: float
    high: float
    says: Says


def judge(pairs: Sequence[Sequence[float]], margin: float = MARGIN) -> Judged:
    """Judge the ratios of two variants' times, turn by turn, measured in one or several pairs of processes.

    The interval is one of order statistics, and holds the median with a probability of at least 93 % whatever the noise
    looks like; it needs five turns. It is a gain where in every pair of processes the whole interval, and not just its
    middle, is above 1 by the margin: processes that do the same differ among each other, too.

    Args:
        pairs: for each pair of processes the ratio of each turn: the time as it is over the time with the change.
        margin: part of 1 that counts as nothing here: where the same script differs from itself by more, that much.

    Example:
        >>> judge([[1.3, 1.2, 1.25, 1.3, 1.27]])
        Judged(ratio=1.27, low=1.2, high=1.3, says=<Says.GAIN: 'gain'>)
    """
    every = [ratio for pair in pairs for ratio in pair]
    if not every or not all(math.isfinite(ratio) and ratio > 0 for ratio in every):
        return Judged(math.nan, math.nan, math.nan, Says.UNSURE)
    intervals = [interval(pair) for pair in pairs]
    low, high = min(low for low, _ in intervals), max(high for _, high in intervals)
    if low > 1 + margin:
        says = Says.GAIN
    elif high < 1 / (1 + margin):
        says = Says.SLOWER
    elif high <= 1 + 2 * MARGIN:
        says = Says.EQUAL
    else:
        says = Says.UNSURE
    return Judged(median(every), low, high, says)


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return an interval that holds the median with 93 % at least; below five values it is everything above 0.

    >>> interval([5, 1, 2, 3, 4])
    (1, 5)
    """
    count = len(ratios)
    left_out, below = 0, 0.5**count
    while 2 * (below + math.comb(count, left_out + 1) * 0.5**count) <= 0.071:
        left_out += 1
        below += math.comb(count, left_out) * 0.5**count
    if count < 5:
        return 0.0, math.inf
    ordered = sorted(ratios)
    return ordered[left_out], ordered[count - 1 - left_out]


def deviation(reference: Sequence[float | None], losses: Sequence[float | None]) -> float:
    """Return how far losses lie from others: the mean of the differences over the mean size; NaN where there are none.

    >>> deviation([2.0, 1.0], [2.0, 1.0])
    0.0
    """
    both = [(a, b) for a, b in zip(reference, losses, strict=False) if a is not None and b is not None]
    if not both or len(reference) != len(losses):
        return math.nan
    if all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in both):
        return 0.0
    size = sum(abs(a) for a, _ in both)
    apart = sum(abs(a - b) for a, b in both)
    return apart / size if size > 0 and math.isfinite(apart) else math.inf
