"""Conversion of the cells of each column to numbers, according to a plan."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import torch

from truestep.data.tables.cells import Cells
from truestep.data.tables.plan import MISSING, TablePlan, chosen
from truestep.errors import BadData, DigitsLost

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a table as tensors, before missing values are filled in.

    Attributes:
        numbers: float64, shape (rows, columns), NaN for a cell without a value.
        onehot: int64, shape (rows, columns): the index of the category.
        codes: like `onehot`, for the columns that stay codes.
        target: int64 of shape (rows,) for classes, float32 of shape (rows, 1) for numbers; None without a target.
    """

    numbers: torch.Tensor
    onehot: torch.Tensor
    codes: torch.Tensor
    target: torch.Tensor | None

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, indices: torch.Tensor) -> Self:
        """Return the rows at `indices`."""
        target = None if self.target is None else self.target[indices]
        return type(self)(self.numbers[indices], self.onehot[indices], self.codes[indices], target)


@dataclass(slots=True)
class Reader:
    """Converts cells to rows; an error has the place of the cell."""

    cells: Cells
    plan: TablePlan
    dropped: set[int] = field(default_factory=set)

    def rows(self) -> TableRows:
        """Return the rows, without those to drop.

        Raises:
            BadData: text among numbers, a missing value without a choice, an unknown category or class.
        """
        plan = self.plan
        numbers = [self._number(name, ("median", "mean", "drop", "a number")) for name in plan.numbers]
        onehot = [self._places(name, found) for name, found in plan.onehot.items()]
        codes = [self._places(name, found) for name, found in plan.codes.items()]
        made = TableRows(self._stacked(numbers), self._stacked(onehot), self._stacked(codes), self._target())
        if not self.dropped:
            return made
        kept = torch.tensor([row not in self.dropped for row in range(len(made))]).nonzero().flatten()
        if not len(kept):
            raise BadData("every row has a cell without a value", path=self.cells.path, remedy="fill them in instead")
        return made.at(kept)

    def _number(self, name: str, choices: Sequence[str]) -> torch.Tensor:
        """Return a column as float64, with NaN for missing values."""
        import polars

        text = self.cells.frame[name]
        numbers = text.cast(polars.Float64, strict=False)
        strange = (numbers.is_null() & text.is_not_null()).arg_true()
        if len(strange):
            raise BadData(
                f"{text[strange[0]]!r} is not a number",
                path=self.cells.path,
                where=self.cells.place(strange[0], name),
                expected="expected numbers, or a choice for a column of text",
                remedy=f'pass categorical=["{name}"], drop=["{name}"], or null_values with the marks of missing values',
            )
        endless = (numbers.is_infinite() | (numbers.is_finite() & (numbers.abs() > 3.4e38))).arg_true()
        if len(endless):
            raise BadData(
                f"{text[endless[0]]!r} has no finite float32",
                path=self.cells.path,
                where=self.cells.place(endless[0], name),
                remedy="correct the cell, or name it in null_values=",
            )
        empty = numbers.is_null() | numbers.is_nan()
        self._allow(name, empty, choices)
        if name == self.plan.target or not self.plan.standardize:
            self._warn_of_digits(name, numbers)
        return torch.from_numpy(numbers.fill_null(math.nan).to_numpy().copy())

    def _warn_of_digits(self, name: str, numbers: polars.Series) -> None:
        """Warn of different integers that become equal in float32, which has 24 bits of precision."""
        import polars

        large = numbers.filter((numbers.abs() >= 2**24) & (numbers == numbers.round()))
        if not len(large):
            return
        held = large.cast(polars.Float32)
        if held.n_unique() == large.n_unique():
            return
        row = int(((numbers - numbers.cast(polars.Float32).cast(polars.Float64)).abs() > 0).arg_true()[0])
        warnings.warn(
            f"{large.n_unique():,} different numbers above 2**24 become {held.n_unique():,} in float32, such as "
            f"{self.cells.frame[name][row]} ({self.cells.path}, {self.cells.place(row, name)}): drop a column of ids "
            "with drop=, or subtract an offset",
            DigitsLost,
            stacklevel=2,
        )

    def _places(self, name: str, categories: tuple[str, ...]) -> torch.Tensor:
        import polars

        text = self.cells.frame[name]
        if MISSING in categories:
            text = text.fill_null(MISSING)
        self._allow(name, text.is_null(), ("category", "drop"))
        self._known(name, text, categories, "category", "add it to the list of categories")
        return self._codes(text.cast(polars.Enum(list(categories))))

    def _target(self) -> torch.Tensor | None:
        import polars

        name, classes = self.plan.target, self.plan.classes
        if name is None:
            return None
        if not classes:
            return self._number(name, ("drop",)).to(torch.float32).unsqueeze(1)
        text = self.cells.frame[name]
        self._allow(name, text.is_null(), ("drop",))
        self._known(name, text, classes, "class", "correct the label, or add it to classes=")
        return self._codes(text.cast(polars.Enum(list(classes))))

    def _codes(self, column: polars.Series) -> torch.Tensor:
        import polars

        return torch.from_numpy(column.to_physical().cast(polars.Int64).fill_null(-1).to_numpy().copy())

    def _known(self, name: str, text: polars.Series, known: tuple[str, ...], what: str, remedy: str) -> None:
        strange = (~text.is_in(list(known)) & text.is_not_null()).arg_true()
        if len(strange):
            raise BadData(
                f"{text[strange[0]]!r} is not a known {what}",
                path=self.cells.path,
                where=self.cells.place(strange[0], name),
                expected=f"expected {', '.join(known[:8])}",
                remedy=remedy,
            )

    def _allow(self, name: str, empty: polars.Series, choices: Sequence[str]) -> None:
        """Record the rows to drop; raise for missing values without a choice."""
        choice = chosen(self.plan.missing, name)
        rows = empty.arg_true()
        if not len(rows):
            return
        if (choice if isinstance(choice, str | None) else "a number") not in choices:
            raise BadData(
                f"column {name!r} has no value in {len(rows)} of {len(empty)} rows, first here",
                path=self.cells.path,
                where=self.cells.place(rows[0], name),
                expected=f"expected a choice for them in missing=: {', '.join(choices)}",
                remedy=f'pass missing={{"{name}": "{choices[0]}"}}, or another choice',
            )
        if choice == "drop":
            self.dropped.update(rows.to_list())

    def _stacked(self, columns: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(columns, 1) if columns else torch.zeros(self.cells.frame.height, 0, dtype=torch.int64)
