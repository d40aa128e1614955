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
_LEAST_FEW = 2
_EXACT = 1e-5
"""Largest error of statistics that only two or three columns show, and of medians and quartiles."""
_BELOW, _ABOVE = (-0.25, 0.3), (0.5, 1.5)
"""Minima and maxima of other rows that were brought to the range 0 to 1 of the training."""
_NEARLY = 0.8
_WIDE, _CENTRED, _NEGATIVE = (0.5, 2.0), 0.6, -0.5
"""Deviations, largest mean and largest minimum of other rows that were scaled by means and deviations."""


@dataclass(frozen=True, slots=True)
class View:
    """Sums over the rows of a table, of some of its features.

    Attributes:
        kind: "columns", "channels", or "values" for all values together.
        count: number of values of each feature.
        rows: sums, squares, minima and maxima of each feature, and the number of rows with its minimum and maximum.
        varied: whether a feature has many values.
        grouped: whether some of the rows alone have a mean of zero.
        ends: number of rows with a minimum or maximum of such a feature: 2 for functions of one number.
        robust: number of features with a median of 0 and quartiles at a distance of 1; 0 for joined views.
    """

    kind: str
    count: int
    rows: Any
    varied: Any
    grouped: bool
    ends: int
    robust: int = 0

    def joined(self, other: View) -> View:
        """Return the view of the rows of two tables."""
        one, two = self.rows, other.rows
        rows = one + two
        for at, side in ((2, 1.0), (3, -1.0)):
            first, second = side * one[at], side * two[at]
            rows[at] = side * first.minimum(second)
            rows[at + 2] = one[at + 2] * (first <= second) + two[at + 2] * (second <= first)
        grouped = self.grouped or other.grouped
        varied, ends = self.varied & other.varied, self.ends + other.ends
        return View(self.kind, self.count + other.count, rows, varied, grouped, ends)

    def standardised(self) -> int:
        """Return the number of features with a mean of 0 and a standard deviation of 1; 0 if that may be chance."""
        exact = self.exact()
        return 0 if self.grouped else self._enough(exact)

    def exact(self) -> Any:
        """Return for each feature whether its mean is 0 and its standard deviation 1."""
        mean, spread = self._moments()
        within = _tolerance(self.kind, self.count)
        return (mean.abs() <= within) & (self._off_one(spread) <= within) & self.varied

    def few(self) -> str:
        """Return how a table of two or three columns is scaled with its own statistics, to rounding; empty if not."""
        width = len(self.varied)
        if self.kind != "columns" or not _LEAST_FEW <= width < _LEAST_COLUMNS or not bool(self.varied.all()):
            return ""
        mean, spread = self._moments()
        exact = mean.abs().maximum(self._off_one(spread)) <= _EXACT
        different = len({tuple(column) for column in self.rows[2:4].T.tolist()}) == width
        if different and not self.grouped and bool(exact.all()):
            return "standard"
        single = self.ends > width and bool((self.rows[4:] == 1).all())
        return "range" if single and bool(self._bounds()[1].all()) else ""

    def is_of_range(self) -> bool:
        """Return True if nearly all columns with many values have about the range 0 to 1."""
        least, most = self.rows[2], self.rows[3]
        inside = (least >= _BELOW[0]) & (least <= _BELOW[1]) & (most >= _ABOVE[0]) & (most <= _ABOVE[1])
        return self._most(inside)

    def is_of_deviations(self) -> bool:
        """Return True if nearly all columns with many values have about a mean of 0 and a deviation of 1."""
        mean, spread = self._moments()
        inside = (mean.abs() <= _CENTRED) & (spread >= _WIDE[0]) & (spread <= _WIDE[1])
        return self._most(inside & (self.rows[2] <= _NEGATIVE))

    def _most(self, inside: Any) -> bool:
        found, varied = int((inside & self.varied).sum()), int(self.varied.sum())
        return self.kind == "columns" and found >= _LEAST_COLUMNS and found >= _NEARLY * varied

    def _moments(self) -> tuple[Any, Any]:
        """Return the means and standard deviations of the features."""
        mean = self.rows[0] / self.count
        return mean, (self.rows[1] / self.count - mean.square()).clamp_min(0.0).sqrt()

    def _off_one(self, spread: Any) -> Any:
        """Return the distances of standard deviations from 1, of a sample or of a population."""
        return (spread - 1).abs().minimum((spread * (self.count / (self.count - 1)) ** 0.5 - 1).abs())

    def _bounds(self) -> tuple[Any, Any]:
        """Return for each feature whether its range is 0 to 1 or -1 to 1, and whether few rows reach these bounds."""
        _, _, least, most, at_least, at_most = self.rows
        within = ((least.abs() <= _BOUND) | ((least + 1).abs() <= _BOUND)) & ((most - 1).abs() <= _BOUND)
        return within, within & self.varied & (at_least <= _MOST_BOUND) & (at_most <= _MOST_BOUND)

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
        within, seldom = self._bounds()
        found = int(seldom.sum())
        enough = min(found, self.ends) >= _LEAST_COLUMNS
        return found if enough and bool((within | ~self.varied).all()) else 0

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
    if width >= _LEAST_FEW:
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
    varied = torch.tensor(different)
    ends = len(torch.cat([flat.argmin(0)[varied], flat.argmax(0)[varied]]).unique())
    view = View(kind, count, rows, varied, False, ends)
    exact = view.exact()
    scaled = bool(view.standardised() or view.few())
    grouped = scaled and _is_grouped(torch, kind, sums[:, exact], squares[:, exact], values.shape[1])
    return View(kind, count, rows, varied, grouped, ends, _robust(torch, flat, view) if kind == "columns" else 0)


def _robust(torch: Any, flat: Any, view: View) -> int:
    """Return the number of features with a median of 0 and quartiles at a distance of 1; 0 if that may be chance."""
    ordered = flat.double().sort(0).values
    places = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64) * (len(flat) - 1)
    low = places.long()
    share = (places - low)[:, None]
    lower, median, upper = ordered[low] * (1 - share) + ordered[(low + 1).clamp_max(len(flat) - 1)] * share
    exact = (median.abs() <= _EXACT) & ((upper - lower - 1).abs() <= _EXACT) & view.varied
    different = len({tuple(column) for column in view.rows[2:4].T[exact].tolist()})
    enough = different >= _LEAST_COLUMNS and int(exact.sum()) >= _LEAST_SHARE * int(view.varied.sum())
    return int(exact.sum()) if enough else 0


def _is_grouped(torch: Any, kind: str, sums: Any, squares: Any, width: int) -> bool:
    """Return True if the rows before and behind some row have the mean (and standard deviation) of all."""
    counts = width * torch.arange(1, len(sums), dtype=torch.float64)[:, None]
    least = counts.minimum(counts.flip(0))
    within = (3 * _OF_ERROR / least.sqrt()).clamp(10 * _ROUNDING, 10 * _LARGEST)
    near = sums.cumsum(0)[:-1].abs() / least <= within
    if kind != "columns":
        near &= (squares.cumsum(0)[:-1] - counts).abs() / least <= 2 * within
    return int(near.all(1).sum()) > (1 + _CHANCE * len(sums) if kind == "values" else 0)
