"""Tables from CSV files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from truestep.data._cells import Cells, Layout
from truestep.data._columns import Reader, Rows
from truestep.data._learnt import Learnt, features, learn
from truestep.data._plan import Choice, Plan, plan_of
from truestep.data._samples import Transform, parted
from truestep.data.tensor_set import TensorSet
from truestep.errors import BadData

Categories = Literal["onehot", "codes"] | Sequence[str]


class Table(TensorSet):
    """A table: features, then codes of categories if there are any, then the target if there is one.

    Args:
        rows: the rows, before anything is filled in.
        plan: what each column becomes.
        layout: how files like this one are written.
        learnt: what other rows have taught; learnt from these where None.
        transform: called with the features of a whole batch; returns what replaces them.
    """

    def __init__(
        self, rows: Rows, plan: Plan, layout: Layout, learnt: Learnt | None = None, transform: Transform | None = None
    ) -> None:
        self._table = rows
        self._plan = plan
        self._layout = layout
        self._learnt = learn(rows, plan) if learnt is None else learnt
        fields = [features(rows, plan, self._learnt)]
        if plan.codes:
            fields.append(rows.codes)
        if rows.target is not None:
            fields.append(rows.target)
        super().__init__(fields, transform=transform, classes=plan.classes)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features: a column's, or column=category."""
        return self._plan.features

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The categories of each column of codes: an embedding needs as many rows."""
        return dict(self._plan.codes)

    def split(self, part: float, *, seed: int | None) -> tuple[Self, Self]:
        """Return two tables without a row in common.

        What fills missing cells and what standardizes is learnt again, from the first table alone.

        Args:
            part: of the first table; a float in (0, 1) is a part of the rows, an int a number of them.
            seed: draws the first table at random; None takes the rows that come first.

        Raises:
            BadData: one of the tables is empty.
        """
        one, other = parted(len(self._table), part, seed)
        kind = type(self)
        first = kind(self._table.at(one), self._plan, self._layout, transform=self.transform)
        second = kind(self._table.at(other), self._plan, self._layout, first._learnt, self.transform)
        return first.to(self.device), second.to(self.device)

    def read(self, path: str | Path, *, transform: Transform | None = None) -> Self:
        """Read another file as this one was read, with what this table has learnt; a file without target may be one.

        Args:
            path: a file with the same columns; others are left out.
            transform: called with the features of a whole batch; returns what replaces them.

        Raises:
            BadData: a column that is not there, an unknown category or class, and as `csv`.
        """
        cells = Cells(Path(path), self._layout)
        plan = self._plan
        lost = [name for name in plan.columns if name not in cells.frame.columns]
        if lost:
            raise BadData(
                f"column {lost[0]!r} is not there",
                path=cells.path,
                where="line 1",
                expected=f"expected {', '.join(plan.columns[:16])}",
                remedy="read a file with the columns of the first one",
            )
        if plan.target not in cells.frame.columns:
            plan = dataclasses.replace(plan, target=None)
        return type(self)(Reader(cells, plan).rows(), plan, self._layout, self._learnt, transform)


def csv(
    path: str | Path,
    *,
    target: str | int | None = None,
    categorical: Sequence[str] | Mapping[str, Categories] = (),
    missing: Choice | Mapping[str, Choice] | None = None,
    drop: Sequence[str] = (),
    classes: Sequence[str] | Literal["all"] | None = None,
    standardize: bool = False,
    separator: str = ",",
    header: bool = True,
    columns: Sequence[str] | None = None,
    null_values: Sequence[str] = ("",),
    replace: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    transform: Transform | None = None,
) -> Table:
    """Read a table from a CSV file; what is text or has no value is used as you choose, and not otherwise.

    Args:
        path: the file, gzip or not. White space around cells is no part of them.
        target: the column to predict, by name or place (-1 is the last); None for none.
        categorical: the columns of categories: a list, or {column: "onehot"} for columns of 0 and 1, {column: "codes"}
            for a field of codes that an embedding takes, {column: [...]} for "onehot" of those categories.
        missing: what becomes of cells without a value, for all columns or {column: choice}: "drop" the row, fill in the
            "mean", the "median" or a number; "category" makes them a category of their own.
        drop: columns that are left out.
        classes: the classes of the target, in the order of their labels; "all" makes a class of each value. None makes
            classes of text only, sorted.
        standardize: give columns of numbers mean 0 and standard deviation 1.
        separator: one character between cells.
        header: whether the first line names the columns.
        columns: the columns' names, instead of the header's, or of column_0, column_1, ... without a header.
        null_values: cells that hold no value, such as ("", "NA", "?").
        replace: cells and what is read instead of them, such as {"<=50K.": "<=50K"}.
        encoding: of the file.
        transform: called with the features of a whole batch, where the data are; returns what replaces them.

    Returns:
        A set of features, float32 of shape (features,); codes, int64 of shape (columns,), if there are any; and the
        target: a class, int64 of shape (), or a number, float32 of shape (1,), which is the shape of `Linear(..., 1)`.
        `split` learns means and medians from its first part alone; `read` reads another file in the same way.

    Raises:
        BadData: a column of text or a missing value without a choice, lines of different lengths, an unknown class.
        PackageMissing: polars is not installed.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from truestep import data
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "houses.csv").write_text("rooms,place,price\\n4,bay,10\\n,inland,20\\n6,bay,30\\n")
    ...     made = data.csv(
    ...         f"{folder}/houses.csv", target="price", categorical=["place"], missing={"rooms": "median"}
    ...     )
    >>> made.features
    ('rooms', 'place=bay', 'place=inland')
    >>> made[1]
    (tensor([5., 0., 1.]), tensor([20.]))
    """
    names = None if columns is None else _listed(columns)
    layout = Layout(separator, header, names, _listed(null_values), dict(replace or {}), encoding)
    cells = Cells(Path(path), layout)
    sorts = categorical if isinstance(categorical, Mapping) else _listed(categorical)
    plan = plan_of(cells, target, sorts, missing, _listed(drop), classes, standardize=standardize)
    return Table(Reader(cells, plan).rows(), plan, layout, transform=transform)


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return several texts, or the only one: a text is a sequence of its letters too."""
    return (names,) if isinstance(names, str) else tuple(names)
