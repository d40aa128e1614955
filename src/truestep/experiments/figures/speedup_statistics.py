"""Judge ratios of times: a gain, a slowdown, no gain, or undecided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

MARGIN = 0.03
"""Smallest relative gain that counts: two processes with the same work differ by about this much all their life."""


class SpeedVerdict(StrEnum):
    """Verdict of a comparison."""

    GAIN = "gain"
    SLOWER = "slower"
    EQUAL = "no gain"
    UNSURE = "cannot tell"


@dataclass(frozen=True, slots=True)
class Judged:
    """A speed-up with its interval and verdict.

    Attributes:
        ratio: the median over all turns; 2 is twice as fast.
        low: lower end of the interval of the median.
        high: upper end of the interval.
        says: the verdict.
    """

    ratio: float
    low: float
    high: float
    says: SpeedVerdict


def judge(pairs: Sequence[Sequence[float]], margin: float = MARGIN) -> Judged:
    """Judge the ratios of two variants' times per turn, measured in one or several pairs of processes.

    The interval comes from order statistics: it contains the median with a probability of at least 93 %, for any
    distribution of the noise, and needs five turns. A gain requires that the whole interval, not only its middle, lies
    above 1 + margin in every pair of processes, since even processes with the same work differ from each other.

    Args:
        pairs: for each pair of processes the ratio of each turn: time without the change over time with it.
        margin: relative difference that counts as none; larger if the script differs more than `MARGIN` from itself.

    Example:
        >>> judge([[1.3, 1.2, 1.25, 1.3, 1.27]])
        Judged(ratio=1.27, low=1.2, high=1.3, says=<SpeedVerdict.GAIN: 'gain'>)
    """
    every = [ratio for pair in pairs for ratio in pair]
    if not every or not all(math.isfinite(ratio) and ratio > 0 for ratio in every):
        return Judged(math.nan, math.nan, math.nan, SpeedVerdict.UNSURE)
    intervals = [interval(pair) for pair in pairs]
    low, high = min(low for low, _ in intervals), max(high for _, high in intervals)
    if low > 1 + margin:
        says = SpeedVerdict.GAIN
    elif high < 1 / (1 + margin):
        says = SpeedVerdict.SLOWER
    elif high <= 1 + 2 * MARGIN:
        says = SpeedVerdict.EQUAL
    else:
        says = SpeedVerdict.UNSURE
    return Judged(median(every), low, high, says)


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return an interval that contains the median with at least 93 %; (0, inf) for fewer than five values.

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
    """Return the mean absolute difference of two series of losses over the mean size; NaN if they cannot be compared.

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
