"""Statistics of the features of a table: whether they are those of data that were scaled with their own statistics.

Data of n rows that were scaled with other statistics have means of about 1/sqrt(n); exact zeros are not a coincidence.
Rows that were scaled one by one, or in groups, have the same statistics, and are recognized by the sums of their parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

_MOST_COLUMNS = 64
_MOST_VALUES = 1 << 24
_LEAST_ROWS = 30
_LEAST_COLUMNS = 4
_LEAST_DISTINCT = 8
_LEAST_SHARE = 0.25
"""Least share of scaled features among those with many values: others, such as classes, are often left as they are."""
_OF_ERROR = 0.01
"""Largest mean, and distance of the standard deviation from one, in standard errors of other data."""
_ROUNDING = 5e-6
_LARGEST = 1e-3
_BOUND = 1e-6
_MOST_BOUND = 2
"""Largest number of rows with the least or the largest value of a feature: more were cut off, or are classes."""
_CHANCE = 1e-3
_LEAST_WIDTH = 16
"""Least number of values of a row that are scaled with a single mean."""


@dataclass(frozen=True, slots=True)
class View:
    """Sums over the rows of a table, of some of its features.

    Attributes:
        kind: "columns", "channels", or "values" for all values together.
        count: number of values of each feature.
        rows: sums, squares, minima and maxima of each feature, and the number of rows with its minimum and maximum.
        varied: whether a feature has many values.
        grouped: whether some of the rows alone have a mean of zero.
    """

    kind: str
    count: int
    rows: Any
    varied: Any
    grouped: bool

    def joined(self, other: View) -> View:
        """Return the view of the rows of two tables."""
        one, two = self.rows, other.rows
        rows = one + two
        for at, side in ((2, 1.0), (3, -1.0)):
            first, second = side * one[at], side * two[at]
            rows[at] = side * first.minimum(second)
            rows[at + 2] = one[at + 2] * (first <= second) + two[at + 2] * (second <= first)
        grouped = self.grouped or other.grouped
        return View(self.kind, self.count + other.count, rows, self.varied & other.varied, grouped)

    def standardised(self) -> int:
        """Return the number of features with a mean of 0 and a standard deviation of 1; 0 if that may be chance."""
        exact = self.exact()
        return 0 if self.grouped else self._enough(exact)

    def exact(self) -> Any:
        """Return for each feature whether its mean is 0 and its standard deviation 1."""
        mean = self.rows[0] / self.count
        variance = (self.rows[1] / self.count - mean.square()).clamp_min(0.0)
        within = _tolerance(self.kind, self.count)
        spread = (variance.sqrt() - 1).abs().minimum((variance * self.count / (self.count - 1)).sqrt().sub(1).abs())
        return (mean.abs() <= within) & (spread <= within) & self.varied

    def _enough(self, exact: Any) -> int:
        found, varied = int(exact.sum()), int(self.varied.sum())
        if self.kind != "columns":
            return found if found == len(exact) else 0
        different = len({tuple(column) for column in self.rows[2:4].T[exact].tolist()})
        return found if different >= _LEAST_COLUMNS and found >= _LEAST_SHARE * varied else 0

    def bounded(self) -> int:
        """Return the number of features with the range 0 to 1, or -1 to 1; 0 unless that are all with many values."""
        if self.kind != "columns":
            return 0
        _, _, least, most, at_least, at_most = self.rows
        seldom = self.varied & (at_least <= _MOST_BOUND) & (at_most <= _MOST_BOUND)
        within = ((least.abs() <= _BOUND) | ((least + 1).abs() <= _BOUND)) & ((most - 1).abs() <= _BOUND)
        found = int((within & seldom).sum())
        return found if found >= _LEAST_COLUMNS and bool((within | ~self.varied).all()) else 0

    def reaches(self, other: View) -> int:
        """Return the number of minima and maxima of another view that this one reaches."""
        return int(((self.rows[2:4] - other.rows[2:4]).abs() <= _BOUND)[:, self.varied].sum())


def _tolerance(kind: str, count: int) -> float:
    share = 0.3 * _OF_ERROR if kind == "values" else _OF_ERROR
    return min(_LARGEST, max(_ROUNDING if kind != "values" else 0.2 * _ROUNDING, share / math.sqrt(count)))


def views_of(torch: Any, table: Any) -> list[View]:
    """Return the views of a table of at least 30 rows; none if it is too large.

    Args:
        torch: the module.
        table: a floating-point tensor (rows, ...).
    """
    rows = len(table)
    if rows < _LEAST_ROWS or table.numel() > _MOST_VALUES or not bool(table.isfinite().all()):
        return []
    flat = table.reshape(rows, -1)
    width = flat.shape[1]
    found = []
    if width >= _LEAST_COLUMNS:
        some = flat[:, :: max(1, width // _MOST_COLUMNS)][:, :_MOST_COLUMNS].double()
        found.append(_view(torch, "columns", some[:, None]))
    if table.dim() >= 3:
        sides = [at for at in dict.fromkeys((1, table.dim() - 1)) if 2 <= table.shape[at] <= _MOST_COLUMNS]
        found += [_view(torch, "channels", table.movedim(at, -1).reshape(rows, -1, table.shape[at])) for at in sides]
    if width >= _LEAST_WIDTH:
        found.append(_view(torch, "values", flat[:, :, None]))
    return found


def _view(torch: Any, kind: str, values: Any) -> View:
    """Return the view of a table (rows, values of a feature in a row, features)."""
    sums, squares = values.sum(1, dtype=torch.float64), values.double().square().sum(1)
    least, most = values.amin((0, 1)), values.amax((0, 1))
    flat = values.flatten(0, 1)
    at_least, at_most = ((flat == bound).sum(0) for bound in (least, most))
    rows = torch.stack(
        [sums.sum(0), squares.sum(0), least.double(), most.double(), at_least.double(), at_most.double()]
    )
    different = [len(column.unique()) >= _LEAST_DISTINCT for column in flat[: 1 << 14].T]
    count = len(flat)
    view = View(kind, count, rows, torch.tensor(different), False)
    exact = view.exact()
    grouped = bool(view.standardised()) and _is_grouped(torch, kind, sums[:, exact], squares[:, exact], values.shape[1])
    return View(kind, count, rows, view.varied, grouped)


def _is_grouped(torch: Any, kind: str, sums: Any, squares: Any, width: int) -> bool:
    """Return True if the rows before and behind some row have the mean (and standard deviation) of all."""
    counts = width * torch.arange(1, len(sums), dtype=torch.float64)[:, None]
    least = counts.minimum(counts.flip(0))
    within = (3 * _OF_ERROR / least.sqrt()).clamp(10 * _ROUNDING, 10 * _LARGEST)
    near = sums.cumsum(0)[:-1].abs() / least <= within
    if kind != "columns":
        near &= (squares.cumsum(0)[:-1] - counts).abs() / least <= 2 * within
    return int(near.all(1).sum()) > (1 + _CHANCE * len(sums) if kind == "values" else 0)
