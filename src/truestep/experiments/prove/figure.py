"""One number of two variants: whether it differs, whether it does not, or that this many seeds cannot tell."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

WITHIN = 0.02
"""Part of a number as it is: a difference that is smaller for sure is none."""
MOST_SEEDS = 200
"""More are not recommended: a difference so small for its spread is found in another way."""
_SURE = 0.95
_POWER = 0.8
"""Probability with which the number of seeds that is recommended shows the difference."""


class Says(enum.StrEnum):
    """What a comparison over seeds came to."""

    DIFFERS = "differs"
    ALIKE = "does not differ"
    UNSURE = "cannot tell"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of both variants, over the seeds.

    The variants of a seed begin with the same random numbers, so that their differences are compared, seed by seed:
    Student's interval around the mean of these differences holds the true one with 95 %. Where several numbers judge
    one finding, each interval is so much wider that all of them hold with 95 %.

    Attributes:
        name: what it is: "loss at the end", or the text around a number that the script prints last.
        as_it_is: one value per seed.
        remedied: likewise.
        cost: whether it is time or memory. What else a machine does differs from run to run, so that a cost differs
            only where the remedy lowers it, and ratios are compared: whatever slows a machine down multiplies.
        least: the part of a number as it is that a difference must exceed.
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
        """The mean of the remedied values less that of the others."""
        return fmean(self.remedied) - fmean(self.as_it_is)

    @property
    def bound(self) -> float:
        """How large a difference may be that is none, in the unit of `interval`."""
        if self.cost:
            return -math.log(1 - self.least)
        return self.least * abs(fmean(self.as_it_is))

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the mean difference; of the logarithm of the ratio, for a cost."""
        apart = self._apart()
        if len(apart) < 2 or not all(map(math.isfinite, apart)):
            return -math.inf, math.inf
        half = quantile((1 - _SURE) / self.among, len(apart) - 1) * stdev(apart) / math.sqrt(len(apart))
        return fmean(apart) - half, fmean(apart) + half

    @property
    def says(self) -> Says:
        """What it came to. Values that are finite for every seed with the remedy, and only with it, differ."""
        if not all(map(math.isfinite, self.as_it_is)):
            return Says.DIFFERS if all(map(math.isfinite, self.remedied)) else Says.UNSURE
        low, high = self.interval
        if self.cost:
            return Says.DIFFERS if high < -self.bound else Says.ALIKE if low > -self.bound else Says.UNSURE
        if -self.bound <= low and high <= self.bound:
            return Says.ALIKE
        return Says.DIFFERS if low > 0 or high < 0 else Says.UNSURE

    @property
    def is_beyond_noise(self) -> bool:
        """Whether it differs."""
        return self.says is Says.DIFFERS

    @property
    def seeds(self) -> int | None:
        """How many seeds would tell, if the differences go on as they are; None for more than are recommended."""
        apart = self._apart()
        if self.says is not Says.UNSURE or len(apart) < 2 or not all(map(math.isfinite, apart)):
            return None
        mean, spread = fmean(apart), stdev(apart)
        if self.cost:
            gaps = [abs(mean + self.bound)]
        else:  # the difference shows, or that there is none
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
    """Return the value that Student's t exceeds, up or down, with a probability.

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
    """Return the probability with which Student's t lies between -value and value: a finite sum for whole degrees."""
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
