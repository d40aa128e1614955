"""One number of two variants, and whether it differs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % quantile of Student's t for 1 to 10 degrees of freedom; the last one is taken for more."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of both variants, over the seeds.

    Attributes:
        name: what it is: "loss at the end", or the text around a number that the script prints last.
        as_it_is: one value per seed.
        remedied: likewise.
        cost: whether it is time or memory. What else a machine does differs from run to run, so that a cost differs
            only where the remedy lowers it.
        least: the part of a cost as it is that a difference exceeds.
    """

    name: str
    as_it_is: tuple[float, ...]
    remedied: tuple[float, ...]
    cost: bool = False
    least: float = 0.0

    @property
    def difference(self) -> float:
        """The mean of the remedied values less that of the others."""
        return fmean(self.remedied) - fmean(self.as_it_is)

    @property
    def is_beyond_noise(self) -> bool:
        """Whether the difference has one sign for every seed, and Student's interval of 95 % around it leaves 0 out.

        Values that are finite for every seed with the remedy, and only with it, differ too.
        """
        pairs = [after - before for before, after in zip(self.as_it_is, self.remedied, strict=True)]
        if not all(map(math.isfinite, pairs)):
            return not all(map(math.isfinite, self.as_it_is)) and all(map(math.isfinite, self.remedied))
        if len(pairs) < 2 or not (all(pair > 0 for pair in pairs) or all(pair < 0 for pair in pairs)):
            return False
        return self._is_lower() if self.cost else _is_not_0(pairs)

    def _is_lower(self) -> bool:
        """Whether a cost is lower for sure. Whatever slows a machine down multiplies: ratios are compared."""
        if min(*self.as_it_is, *self.remedied) <= 0:
            return False
        pairs = [math.log(after / before) for before, after in zip(self.as_it_is, self.remedied, strict=True)]
        return fmean(pairs) < math.log(1 - self.least) and _is_not_0(pairs)


def _is_not_0(differences: Sequence[float]) -> bool:
    """Whether Student's interval of 95 % around the mean of some differences leaves 0 out."""
    quantile = _STUDENT[min(len(differences) - 1, len(_STUDENT)) - 1]
    return abs(fmean(differences)) > quantile * stdev(differences) / math.sqrt(len(differences))
