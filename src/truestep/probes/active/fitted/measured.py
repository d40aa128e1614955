"""Tables and series as measured, and the places of scaled rows in them.

A row that was scaled with certain statistics is brought back with them, and is found if its values are in one row of
the table, up to the rounding of single precision. With other statistics, not even one row is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from truestep.probes.active.fitted.spread import kind_of, statistics, tolerance

_MOST_COLUMNS = 64
_MOST_NEAR = 64
"""Most rows with the same value of a column."""
_MOST_TRIED = 6
_FEW = 12


class Places(NamedTuple):
    """Rows of a table that scaled rows were made from.

    Attributes:
        rows: the place of each.
        columns: the columns of the table that are scaled.
    """

    rows: Any
    columns: tuple[int, ...]


class Measured:
    """A table of rows, or the windows of a series.

    Args:
        torch: the module.
        values: the values as measured (rows, columns).
        window: number of steps of a window; 0 for a table.
        first: the first column that the rows have.
        turned: True for windows with their columns first.
    """

    def __init__(self, torch: Any, values: Any, window: int, first: int = 0, *, turned: bool = False) -> None:
        self._torch = torch
        self._values = values[:, first : first + _MOST_COLUMNS].double()
        self.window = window
        self._turned = turned
        self._first = first
        self._kinds = [kind_of(column) for column in self._values.T]
        self._scales: dict[str, tuple[Any, Any, Any]] = {}
        self._sorted: dict[int, tuple[Any, Any]] = {}

    @property
    def steps(self) -> int:
        """Number of rows, or of steps of the series."""
        return len(self._values)

    @property
    def count(self) -> int:
        """Number of rows, or of windows."""
        return len(self._values) - max(0, self.window - 1)

    def places(self, rows: Any, how: str, least: int, columns: tuple[int, ...] | None = None) -> Places | None:
        """Return the places of all of some rows, as scaled; None if they are not scaled in this way.

        Args:
            rows: the rows (rows, values).
            how: the statistics.
            least: least number of columns of measured values, not of a grid, that are scaled.
            columns: those that must be scaled; None for any.
        """
        if self.count < 1 or "measured" not in self._kinds:
            return None
        centre, spread, within = self._scale(how)
        usable = within > 0
        if int(usable.sum()) < least:
            return None
        wide = self._wide(usable)
        rows = rows[:, : len(wide)].double()
        if rows.shape[1] < len(wide):
            wide = wide[: rows.shape[1]]
        before = rows * self._wide(spread)[: len(wide)] + self._wide(centre)[: len(wide)]
        near = self._wide(within)[: len(wide)].where(wide, self._torch.tensor(-1.0, dtype=self._torch.float64))
        for column in self._order(usable):
            for part in (before[:_FEW], before):
                found = self._best(part, near, column, least)
                if found is None:
                    break
                if len(part) == len(before):
                    kept = self._columns(found[1].all(0))
                    if columns is not None and not set(columns) <= set(kept):
                        return None
                    return Places(found[0], kept)
        return None

    def scale(self, how: str, column: int) -> tuple[float, float]:
        """Return the centre and the spread of a column."""
        centre, spread, _ = self._scale(how)
        return float(centre[column]), float(spread[column])

    def column(self, at: int) -> Any:
        """Return the values of a column."""
        return self._values[:, at]

    def _scale(self, how: str) -> tuple[Any, Any, Any]:
        if how not in self._scales:
            pairs = [
                statistics(column, how) if kind else (0.0, 0.0)
                for column, kind in zip(self._values.T, self._kinds, strict=True)
            ]
            rows = [[centre, spread, tolerance(centre, spread)] for centre, spread in pairs]
            centre, spread, within = self._torch.tensor(rows, dtype=self._torch.float64).T
            self._scales[how] = centre, spread, within
        return self._scales[how]

    def _wide(self, of_columns: Any) -> Any:
        """Return a value of each column for each value of a row."""
        if not self.window:
            return of_columns
        times = self.window
        return of_columns.repeat_interleave(times) if self._turned else of_columns.repeat(times)

    def _rows(self, places: Any) -> Any:
        """Return rows by their places (rows, values)."""
        if not self.window:
            return self._values[places]
        some = self._values.unfold(0, self.window, 1)[places]
        return some.flatten(1) if self._turned else some.transpose(1, 2).flatten(1)

    def _columns(self, matched: Any) -> tuple[int, ...]:
        """Return the columns with all of their values."""
        if self.window:
            by_step = (
                matched.reshape(-1, self.window).all(1) if self._turned else matched.reshape(self.window, -1).all(0)
            )
            matched = by_step
        return tuple(matched.nonzero().flatten().tolist())

    def _order(self, usable: Any) -> list[int]:
        """Return some columns to look for a row by, those with many different values first."""
        some = usable.nonzero().flatten().tolist()
        return sorted(some, key=lambda at: -len(self._of(at)[0].unique()))[:_MOST_TRIED]

    def _of(self, column: int) -> tuple[Any, Any]:
        """Return the values of a column in their order, and their rows."""
        if column not in self._sorted:
            ordered = self._values[: self.count, column].sort()
            self._sorted[column] = ordered.values, ordered.indices
        return self._sorted[column]

    def _best(self, before: Any, near: Any, column: int, least: int) -> tuple[Any, Any] | None:
        """Return for each row that row of the table with most equal values, and which these are."""
        torch = self._torch
        at = column * self.window if self._turned else column
        if at >= before.shape[1]:
            return None
        ordered, order = self._of(column)
        low = torch.searchsorted(ordered, before[:, at] - near[at])
        high = torch.searchsorted(ordered, before[:, at] + near[at], right=True)
        width = int((high - low).amax())
        if int((high - low).amin()) == 0 or width > _MOST_NEAR:
            return None
        most = torch.full((len(before),), -1)
        places = torch.zeros(len(before), dtype=torch.int64)
        matched = torch.zeros(before.shape, dtype=torch.bool)
        for step in range(width):
            rows = order[(low + step).clamp(max=len(order) - 1)]
            equal = (self._rows(rows)[:, : before.shape[1]] - before).abs() <= near
            better = (low + step < high) & (equal.sum(1) > most)
            most = most.where(~better, equal.sum(1))
            places, matched = places.where(~better, rows), matched.where(~better[:, None], equal)
        kept = [self._kinds[one] for one in self._columns(matched.all(0))]
        return (places, matched) if kept.count("measured") >= least else None


def shift(values: Any, centre: float, spread: float, rows: int) -> float:
    """Return how far the statistics of some values are from those that they are scaled with, beyond their errors."""
    scaled = (values - centre) / spread
    error = 3 / math.sqrt(max(1, rows))
    away = max(abs(float(scaled.mean())), abs(float(scaled.std(correction=0)) - 1))
    return max(0.0, away - error)
