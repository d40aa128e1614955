"""One number of two variants: it differs, it does not differ, or more seeds are needed."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

WITHIN = 0.02
"""Relative difference below which two numbers count as equal."""
MOST_SEEDS = 200
"""Largest number of seeds to recommend: a difference that needs more is too small for its spread."""
_SURE = 0.95
_POWER = 0.8
"""Probability that the recommended number of seeds shows the difference."""


class FigureVerdict(enum.StrEnum):
    """Result of a comparison over seeds."""

    DIFFERS = "differs"
    ALIKE = "does not differ"
    UNSURE = "cannot tell"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of both variants, over the seeds.

    Both variants of a seed begin with the same random numbers, so the differences are compared seed by seed: Student's
    interval around their mean contains the true difference with a probability of 95 %. If several numbers judge one
    finding, each interval is wider, such that all of them together hold with 95 % (Bonferroni).

    Attributes:
        name: "loss at the end", or the text around a number in the last output of the script.
        as_it_is: one value per seed, without the remedy.
        remedied: one value per seed, with the remedy.
        cost: True for time and memory. The load of a machine differs from run to run, so a cost counts as different
            only if the remedy lowers it; ratios are compared, since load multiplies times.
        least: smallest relative difference that counts, as a part of `as_it_is`.
        among: how many numbers judge the finding together.
    """

    name: str
    as_it_is: tuple[float, ...]
    remedied: tuple[float, ...]
    cost: bool = False
    least: float = WITHIN
    among: int = 1

    @property
    def difference(self) -> float:
        """Mean with the remedy minus mean without it."""
        return fmean(self.remedied) - fmean(self.as_it_is)

    @property
    def bound(self) -> float:
        """Largest difference that counts as equal, in the unit of `interval`."""
        if self.cost:
            return -math.log(1 - self.least)
        return self.least * abs(fmean(self.as_it_is))

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the mean difference; for a cost, of the logarithm of the ratio."""
        apart = self._apart()
        if len(apart) < 2 or not all(map(math.isfinite, apart)):
            return -math.inf, math.inf
        half = quantile((1 - _SURE) / self.among, len(apart) - 1) * stdev(apart) / math.sqrt(len(apart))
        return fmean(apart) - half, fmean(apart) + half

    @property
    def says(self) -> FigureVerdict:
        """Result. Values that are finite for every seed with the remedy, but not without it, differ."""
        if not all(map(math.isfinite, self.as_it_is)):
            return FigureVerdict.DIFFERS if all(map(math.isfinite, self.remedied)) else FigureVerdict.UNSURE
        low, high = self.interval
        if self.cost:
            return (
                FigureVerdict.DIFFERS
                if high < -self.bound
                else FigureVerdict.ALIKE
                if low > -self.bound
                else FigureVerdict.UNSURE
            )
        if -self.bound <= low and high <= self.bound:
            return FigureVerdict.ALIKE
        return FigureVerdict.DIFFERS if low > 0 or high < 0 else FigureVerdict.UNSURE

    @property
    def is_beyond_noise(self) -> bool:
        """True if the number differs."""
        return self.says is FigureVerdict.DIFFERS

    @property
    def seeds(self) -> int | None:
        """Number of seeds that should suffice, given the spread so far; None for more than `MOST_SEEDS`."""
        apart = self._apart()
        if self.says is not FigureVerdict.UNSURE or len(apart) < 2 or not all(map(math.isfinite, apart)):
            return None
        mean, spread = fmean(apart), stdev(apart)
        if self.cost:
            gaps = [abs(mean + self.bound)]
        else:  # whichever needs fewer seeds: to show the difference, or to show equality
            gaps = [abs(mean), self.bound - abs(mean)]
        wanted = max(gaps)
        for seeds in range(len(apart) + 1, MOST_SEEDS + 1):
            sure = quantile((1 - _SURE) / self.among, seeds - 1) + quantile(2 * (1 - _POWER), seeds - 1)
            if sure * spread <= wanted * math.sqrt(seeds):
                return seeds
        return None

    def _apart(self) -> list[float]:
        pairs = list(zip(self.as_it_is, self.remedied, strict=True))
        if not self.cost:
            return [after - before for before, after in pairs]
        if min(*self.as_it_is, *self.remedied) <= 0:
            return [math.nan]
        return [math.log(after / before) for before, after in pairs]


def quantile(outside: float, degrees: int) -> float:
    """Return the two-sided quantile of Student's t: |t| exceeds it with the probability `outside`.

    >>> [round(quantile(0.05, degrees), 3) for degrees in (1, 2, 3, 10, 100)]
    [12.706, 4.303, 3.182, 2.228, 1.984]
    """
    low, high = 0.0, 1.0
    while 1 - _inside(high, degrees) > outside:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - _inside(middle, degrees) > outside else (low, middle)
    return high


def _inside(value: float, degrees: int) -> float:
    """Return the probability that Student's t lies within ±value: a finite sum, since the degrees are integers."""
    angle = math.atan(value / math.sqrt(degrees))
    cosine = math.cos(angle)
    if degrees % 2 == 0:
        return math.sin(angle) * _sum(cosine, range(2, degrees, 2), 1.0)
    odd = cosine * math.sin(angle) * _sum(cosine, range(3, degrees, 2), 1.0) if degrees > 1 else 0.0
    return 2 / math.pi * (angle + odd)


def _sum(cosine: float, orders: Sequence[int], term: float) -> float:
    total = term
    for order in orders:
        term *= cosine * cosine * (order - 1) / order
        total += term
    return total
