"""What each column of a table becomes, and the numbers that are learnt from the training rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import torch

from truestep.data._cells import Cells
from truestep.errors import BadData

if TYPE_CHECKING:
    import polars

MISSING = "(missing)"
"""The category of cells without a value, where that is asked for."""

_AS = ("onehot", "codes")
_FILLS = ("mean", "median", "drop", "category")

Choice = str | float


@dataclass(frozen=True, slots=True)
class Plan:
    """What each column becomes.

    Attributes:
        numbers: the columns of numbers.
        onehot, codes: the columns of categories, and the categories of each.
        missing: what becomes of cells without a value, by column; the key None stands for every other column.
        target: the column of the target; None without one.
        classes: the classes of the target; empty where it is a number.
        standardize: whether columns of numbers get mean 0 and standard deviation 1.
    """

    numbers: tuple[str, ...]
    onehot: dict[str, tuple[str, ...]]
    codes: dict[str, tuple[str, ...]]
    missing: dict[str | None, Choice]
    target: str | None
    classes: tuple[str, ...]
    standardize: bool

    @property
    def columns(self) -> list[str]:
        """The columns that are read, in the order of the features."""
        return [*self.numbers, *self.onehot, *self.codes]

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features: a column's, or column=category."""
        return (*self.numbers, *(f"{name}={category}" for name, found in self.onehot.items() for category in found))


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table as tensors, before anything is filled in.

    Attributes:
        numbers: float64, shape (rows, columns), NaN where a cell has no value.
        onehot: int64, shape (rows, columns): the place of the category.
        codes: the same of the columns that stay codes.
        target: int64 of shape (rows,) for classes, float32 of shape (rows, 1) for numbers; None without one.
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


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is learnt from the training rows: float64, shape (columns,)."""

    fill: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor


@dataclass(slots=True)
class Reader:
    """Turns cells into rows, and says where a cell is that cannot be turned."""

    cells: Cells
    plan: Plan
    dropped: set[int] = field(default_factory=set)

    def rows(self) -> Rows:
        """Return the rows, without those that are to be dropped.

        Raises:
            BadData: text among numbers, a value that is missing and has no choice, an unknown category or class.
        """
        plan = self.plan
        numbers = [self._number(name, ("median", "mean", "drop", "a number")) for name in plan.numbers]
        onehot = [self._places(name, found) for name, found in plan.onehot.items()]
        codes = [self._places(name, found) for name, found in plan.codes.items()]
        made = Rows(self._stacked(numbers), self._stacked(onehot), self._stacked(codes), self._target())
        if not self.dropped:
            return made
        kept = torch.tensor([row not in self.dropped for row in range(len(made))]).nonzero().flatten()
        if not len(kept):
            raise BadData("every row has a cell without a value", path=self.cells.path, remedy="fill them in instead")
        return made.at(kept)

    def _number(self, name: str, choices: Sequence[str]) -> torch.Tensor:
        """Return a column as float64, with NaN for what is missing."""
        import polars

        text = self.cells.frame[name]
        numbers = text.cast(polars.Float64, strict=False)
        strange = (numbers.is_null() & text.is_not_null()).arg_true()
        if len(strange):
            raise BadData(
                f"{text[strange[0]]!r} is no number",
                path=self.cells.path,
                where=self.cells.place(strange[0], name),
                expected="expected numbers, or a choice for a column of text",
                remedy=f'pass categorical=["{name}"], drop=["{name}"], or null_values with what stands for no value',
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
        return torch.from_numpy(numbers.fill_null(math.nan).to_numpy().copy())

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
                f"{text[strange[0]]!r} is no known {what}",
                path=self.cells.path,
                where=self.cells.place(strange[0], name),
                expected=f"expected {', '.join(known[:8])}",
                remedy=remedy,
            )

    def _allow(self, name: str, empty: polars.Series, choices: Sequence[str]) -> None:
        """Note the rows to drop; raise for cells without a value for which nothing was chosen."""
        choice = chosen(self.plan.missing, name)
        rows = empty.arg_true()
        if not len(rows):
            return
        if (choice if isinstance(choice, str | None) else "a number") not in choices:
            raise BadData(
                f"column {name!r} has no value in {len(rows)} of {len(empty)} rows, here first",
                path=self.cells.path,
                where=self.cells.place(rows[0], name),
                expected=f"expected a choice for them in missing=: {', '.join(choices)}",
                remedy=f'pass missing={{"{name}": "{choices[0]}"}}, or another choice',
            )
        if choice == "drop":
            self.dropped.update(rows.to_list())

    def _stacked(self, columns: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(columns, 1) if columns else torch.zeros(self.cells.frame.height, 0, dtype=torch.int64)


def chosen(missing: Mapping[str | None, Choice], name: str) -> Choice | None:
    """Return what was chosen for a column's cells without a value."""
    return missing.get(name, missing.get(None))


def learn(rows: Rows, plan: Plan) -> Learnt:
    """Learn what fills cells without a value, and the scale of each column of numbers.

    Raises:
        BadData: a column without any value.
    """
    numbers = rows.numbers.to(torch.float64)
    fill = torch.zeros(len(plan.numbers), dtype=torch.float64)
    for at, name in enumerate(plan.numbers):
        choice = chosen(plan.missing, name)
        column = numbers[:, at]
        if choice in ("mean", "median"):
            held = column[~column.isnan()]
            if not len(held):
                raise BadData(f"column {name!r} has no value at all", remedy=f'pass drop=["{name}"]')
            fill[at] = held.mean() if choice == "mean" else _median(held)
        elif isinstance(choice, int | float):
            fill[at] = float(choice)
    filled = torch.where(numbers.isnan(), fill, numbers)
    mean, std = filled.mean(0), filled.std(0, correction=0)
    return Learnt(fill, mean, torch.where(std > 0, std, torch.ones_like(std)))


def _median(values: torch.Tensor) -> torch.Tensor:
    """Return the middle value, or the mean of the two middle ones; torch's own is the lower one of the two."""
    ordered = values.sort().values
    return (ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2


def features(rows: Rows, plan: Plan, learnt: Learnt) -> torch.Tensor:
    """Return the features, float32 of shape (rows, features): numbers first, then one column per category."""
    numbers = rows.numbers.to(torch.float64)
    filled = torch.where(numbers.isnan(), learnt.fill, numbers)
    if plan.standardize:
        filled = (filled - learnt.mean) / learnt.std
    parts = [filled.to(torch.float32)]
    for at, found in enumerate(plan.onehot.values()):
        parts.append(torch.nn.functional.one_hot(rows.onehot[:, at], len(found)).to(torch.float32))
    return torch.cat(parts, 1)


def categories_of(cells: Cells, name: str, wanted: Any, missing: Mapping[str | None, Choice]) -> tuple[str, ...]:
    """Return the categories of a column: those that were given, or those that occur, sorted."""
    if isinstance(wanted, str):
        found = sorted(set(cells.frame[name].drop_nulls().to_list()))
    else:
        found = [str(category) for category in wanted]
    return (*found, MISSING) if missing.get(name, missing.get(None)) == "category" else tuple(found)


def plan_of(
    cells: Cells,
    target: str | int | None,
    categorical: Sequence[str] | Mapping[str, Any],
    missing: Choice | Mapping[str, Choice] | None,
    drop: Sequence[str],
    classes: Sequence[str] | str | None,
    *,
    standardize: bool,
) -> Plan:
    """Return what each column becomes, as `csv` was asked.

    Raises:
        BadData: a name that is no column, or a choice that means nothing.
    """
    names = cells.frame.columns
    kinds: dict[str, Any] = (
        dict(categorical) if isinstance(categorical, Mapping) else dict.fromkeys(categorical, "onehot")
    )
    goal = _column_at(cells, target) if isinstance(target, int) else target
    choices: dict[str | None, Choice] = {}
    if missing is not None:
        choices = dict(missing.items()) if isinstance(missing, Mapping) else {None: missing}
    for what, used in (
        ("target", [] if goal is None else [goal]),
        ("categorical", list(kinds)),
        ("missing", [name for name in choices if name is not None]),
        ("drop", list(drop)),
    ):
        for name in used:
            if name not in names:
                raise BadData(
                    f"{what}={name!r} is no column",
                    path=cells.path,
                    expected=f"expected one of {', '.join(names[:16])}",
                    remedy="correct the name, or pass header= and columns= as the file has them",
                )
    for wanted in kinds.values():
        if isinstance(wanted, str) and wanted not in _AS:
            raise BadData(
                f"{wanted!r} is no form of a category",
                expected='expected "onehot", "codes", or a list of the categories',
                remedy='pass "onehot" for columns of 0 and 1, "codes" for an embedding',
            )
    for choice in choices.values():
        if isinstance(choice, bool) or (isinstance(choice, str) and choice not in _FILLS):
            raise BadData(
                f"missing={choice!r} is no choice",
                expected='expected "drop", "mean", "median", "category" or a number',
                remedy='pass missing={"column": "median"}',
            )
    out = {goal, *drop}
    sorts = {name: categories_of(cells, name, wanted, choices) for name, wanted in kinds.items() if name not in out}
    return Plan(
        tuple(name for name in names if name not in out and name not in kinds),
        {name: found for name, found in sorts.items() if kinds[name] != "codes"},
        {name: found for name, found in sorts.items() if kinds[name] == "codes"},
        choices,
        goal,
        () if goal is None else _classes(cells, goal, classes),
        standardize,
    )


def _column_at(cells: Cells, place: int) -> str:
    names = cells.frame.columns
    if not -len(names) <= place < len(names):
        raise BadData(f"target={place} is none of {len(names)} columns", path=cells.path, remedy="pass -1 for the last")
    return str(names[place])


def _classes(cells: Cells, target: str, classes: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the classes of the target; none where it is a number."""
    import polars

    column = cells.frame[target].drop_nulls()
    numeric = not column.cast(polars.Float64, strict=False).null_count()
    if classes is None and numeric:
        return ()
    if classes is None or classes == "all":
        return tuple(sorted(set(column.to_list()), key=float if numeric else None))
    if isinstance(classes, str):
        raise BadData(f'classes="{classes}" is no list of classes', remedy='pass a list, or "all" for all that occur')
    return tuple(map(str, classes))
