"""Tables from CSV files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from truestep.data._samples import Transform, parted
from truestep.data.preprocessing.of_rows import Rows
from truestep.data.tables.cells import Cells, Layout
from truestep.data.tables.columns import Reader, TableRows
from truestep.data.tables.learnt import Learnt, features, learn
from truestep.data.tables.plan import Choice, TablePlan, plan_of
from truestep.data.tensor_set import TensorSet
from truestep.errors import BadData

Categories = Literal["onehot", "codes"] | Sequence[str]


class Table(TensorSet):
    """A table: features, then codes of categories if there are any, then the target if there is one.

    Args:
        rows: the rows, before missing values are filled in.
        plan: the kind of each column.
        layout: the format of the file.
        learnt: statistics of other rows; None computes them from these rows.
        transform: called with the features of a whole batch; returns their replacement.
    """

    def __init__(
        self,
        rows: TableRows,
        plan: TablePlan,
        layout: Layout,
        learnt: Learnt | None = None,
        transform: Transform | None = None,
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

    def prepare(self) -> Rows:
        """Return the preprocessing before the transform."""
        return Rows(self._plan, self._layout, self._learnt)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: the column, or column=category."""
        return self._plan.features

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Categories of each column of codes; their number is that of rows for an embedding."""
        return dict(self._plan.codes)

    def split(self, part: float, *, seed: int | None) -> tuple[Self, Self]:
        """Return two tables without a common row.

        Fill values, means and standard deviations are computed again, from the first table alone.

        Args:
            part: size of the first table: a float in (0, 1) as a fraction of the rows, an int as their number.
            seed: draws the first table at random; None takes the first rows.

        Raises:
            BadData: one of the tables is empty.
        """
        one, other = parted(len(self._table), part, seed)
        kind = type(self)
        first = kind(self._table.at(one), self._plan, self._layout, transform=self.transform)
        second = kind(self._table.at(other), self._plan, self._layout, first._learnt, self.transform)
        return first.to(self.device), second.to(self.device)

    def read(self, path: str | Path, *, transform: Transform | None = None) -> Self:
        """Read another file in the same way, with the statistics of this table; the column of the target is optional.

        Args:
            path: a file with the same columns; others are ignored.
            transform: called with the features of a whole batch; returns their replacement.

        Raises:
            BadData: a missing column, an unknown category or class, and as `csv`.
        """
        cells = Cells(Path(path), self._layout)
        plan = self._plan
        lost = [name for name in plan.columns if name not in cells.frame.columns]
        if lost:
            raise BadData(
                f"column {lost[0]!r} is missing",
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
    """Read a table from a CSV file. Columns of text and missing values raise an error unless a choice is passed.

    Args:
        path: the file, gzip or not. White space around cells is stripped.
        target: the column to predict, by name or index (-1 is the last); None for no target.
        categorical: the columns of categories: a list, or {column: "onehot"} for columns of 0 and 1, {column: "codes"}
            for a field of codes for an embedding, {column: [...]} for "onehot" with those categories.
        missing: the choice for cells without a value, for all columns or {column: choice}: "drop" the row, fill in the
            "mean", the "median" or a number; "category" makes them a separate category.
        drop: columns to ignore.
        classes: the classes of the target, in the order of their labels; "all" makes a class of each value. None makes
            classes of text only, sorted.
        standardize: True to scale columns of numbers to mean 0 and standard deviation 1.
        separator: one character between cells.
        header: True if the first line has the names of the columns.
        columns: names of the columns, instead of those of the header, or of column_0, column_1, ... without a header.
        null_values: cells that hold no value, such as ("", "NA", "?").
        replace: cells and their replacements, such as {"<=50K.": "<=50K"}.
        encoding: encoding of the file.
        transform: called with the features of a whole batch, on the device of the data; returns their replacement.

    Returns:
        A set of features, float32 of shape (features,); codes, int64 of shape (columns,), if there are any; and the
        target: a class, int64 of shape (), or a number, float32 of shape (1,), which is the shape of `Linear(..., 1)`.
        `split` computes means and medians from its first part alone; `read` reads another file in the same way.

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
    """Return a tuple of the names; a single str is one name, not a sequence of its letters."""
    return (names,) if isinstance(names, str) else tuple(names)
