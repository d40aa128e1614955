"""Statistics of a series: whether they are those of data that were scaled with their own statistics.

A series that was scaled with other statistics has means far from zero; exact zeros are not a coincidence, unless it
repeats without noise, or is symmetric, or was scaled part by part. These are recognized by the sums of its parts, and
by its third moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

_MOST_COLUMNS = 64
_ROUNDING = 5e-6
_OF_ERROR = 0.003
"""Largest mean, and distance of the standard deviation from one, in standard errors of independent values."""
_WIDE = 4
"""From this number of exact columns, the larger error of sums in single precision is allowed."""
_OF_ERROR_WIDE = 0.01
_LARGEST = 1e-3
_LEAST_DISTINCT = 50
_DISTINCT = 0.25
"""Least share of different values in a column: hours and categories repeat in the same numbers everywhere."""
_SYMMETRIC = 1e-3
_OF_PARTS = 5e-5
_LEAST_PART = 20
_MOST_TIMES = 10
"""Largest plain number that scaled values are multiplied or divided by."""
_BOUND = 1e-6
_GAP = 1e-3
"""Least distance of a minimum or maximum from the third one: a smooth wave, or steps, come near to it again."""
_LEAST_VARIED = 0.5
_ENDS = 512


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sums over the steps of a series.

    Attributes:
        count: number of steps.
        sums: sums and sums of squares of each column.
        varied: whether a column has many values and is not symmetric.
        ranged: whether a column has the range 0 to 1 or -1 to 1, by single values.
        grouped: for each column, whether a part of the series alone has a mean of 0 and a standard deviation of 1.
        head: the first steps.
        tail: the last steps.
    """

    count: int
    sums: Any
    varied: Any
    ranged: Any
    grouped: Any
    head: Any
    tail: Any

    def centred(self, torch: Any) -> dict[int, float]:
        """Return the columns with a mean of 0 and a standard deviation of a plain number, and this number."""
        mean = self.sums[0] / self.count
        variance = (self.sums[1] / self.count - mean.square()).clamp_min(0.0)
        found: dict[int, float] = {}
        for at in (self.varied & ~self.grouped & (variance > 0)).nonzero().flatten().tolist():
            for spread in (float(variance[at]), float(variance[at]) * self.count / (self.count - 1)):
                times = math.sqrt(spread)
                near = float(round(times)) if times > 1 else 1 / round(1 / times)
                plain = 1 / _MOST_TIMES <= near <= _MOST_TIMES
                for within in (_tolerance(self.count, _OF_ERROR), _tolerance(self.count, _OF_ERROR_WIDE)):
                    exact = plain and max(abs(times / near - 1), abs(float(mean[at])) / near) <= within
                    if exact and at not in found:
                        found[at] = near if within <= _tolerance(self.count, _OF_ERROR) else -near
        narrow = {at: near for at, near in found.items() if near > 0}
        return {at: abs(near) for at, near in found.items()} if len(found) >= _WIDE else narrow

    def standard(self, torch: Any) -> set[int]:
        """Return the columns with a mean of 0 and a standard deviation of 1."""
        return {at for at, times in self.centred(torch).items() if times == 1}

    def shift(self, columns: set[int]) -> float:
        """Return the largest distance of the mean and the standard deviation of some columns from 0 and 1."""
        some = sorted(columns)
        mean = self.sums[0][some] / self.count
        spread = (self.sums[1][some] / self.count - mean.square()).clamp_min(0.0).sqrt()
        return float(max(mean.abs().max(), (spread - 1).abs().max()))

    def prepared(self) -> bool:
        """Return True if all columns with many values were brought near to a mean of 0 and a deviation of 1."""
        mean = self.sums[0] / self.count
        spread = (self.sums[1] / self.count - mean.square()).clamp_min(0.0).sqrt()
        near = (mean.abs() < 1) & (spread > 0.2) & (spread < 5)
        return bool(near[self.varied].all()) and bool(self.varied.any())

    def joined(self, torch: Any, later: Statistics) -> Statistics:
        """Return the statistics of a series and a later one, which can begin with the last steps of this one."""
        common = _overlap(self.tail, later.head)
        again = later.head[:common].double()
        sums = self.sums + later.sums - torch.stack([again.sum(0), again.square().sum(0)])
        tail = torch.cat([self.tail, later.tail[max(0, common + len(later.tail) - later.count) :]])[-_ENDS:]
        return Statistics(
            self.count + later.count - common,
            sums,
            self.varied & later.varied,
            self.ranged & later.ranged,
            self.grouped | later.grouped,
            self.head,
            tail,
        )


def statistics_of(torch: Any, series: Any) -> Statistics | None:
    """Return the statistics of a series (steps, columns); None for values that are not finite."""
    series = series[:, :_MOST_COLUMNS]
    if not bool(series.isfinite().all()):
        return None
    values, count = series.double(), len(series)
    distinct = torch.tensor([len(column.unique()) for column in series.T])
    mean, spread = values.mean(0), values.std(0).clamp_min(1e-300)
    lopsided = ((values - mean) / spread).pow(3).mean(0).abs() > _SYMMETRIC
    least = max(_LEAST_DISTINCT, _DISTINCT * count)
    return Statistics(
        count,
        torch.stack([values.sum(0), values.square().sum(0)]),
        (distinct >= least) & lopsided,
        _ranged(values) & (distinct >= _LEAST_VARIED * count),
        _grouped(torch, values),
        series[:_ENDS].clone(),
        series[-_ENDS:].clone(),
    )


def _tolerance(count: int, share: float) -> float:
    return min(_LARGEST, max(_ROUNDING, share / math.sqrt(count)))


def _ranged(values: Any) -> Any:
    """Return for each column whether single values are at 0 (or -1) and 1, and the others apart from them."""
    least, most = values.sort(0).values[:3], values.sort(0).values[-3:]
    ends = ((least[0].abs() <= _BOUND) | ((least[0] + 1).abs() <= _BOUND)) & ((most[2] - 1).abs() <= _BOUND)
    return ends & (least[2] - least[0] >= _GAP) & (most[2] - most[0] >= _GAP)


def _grouped(torch: Any, values: Any) -> Any:
    """Return for each column whether the steps before and behind some step have the same mean and deviation as all."""
    count = len(values)
    mean = values.mean(0)
    scaled = (values - mean) / values.std(0, correction=0).clamp_min(1e-300)
    counts = torch.arange(1, count + 1, dtype=torch.float64)[:, None]
    within = _OF_PARTS * counts.minimum(count - counts)
    near = (scaled.cumsum(0).abs() <= within) & ((scaled.square().cumsum(0) - counts).abs() <= 2 * within)
    return near[_LEAST_PART : count - _LEAST_PART].any(0)


def _overlap(tail: Any, head: Any) -> int:
    """Return the number of first steps of a series that are the last ones of another."""
    for common in range(min(len(tail), len(head)), 0, -1):
        if bool((tail[-common:] == head[:common]).all()):
            return common
    return 0
