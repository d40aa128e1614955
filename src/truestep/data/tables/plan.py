"""The plan of a table: the kind of each column, and the choices for missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truestep.data.tables.cells import Cells
from truestep.errors import BadData

MISSING = "(missing)"
"""The category of cells without a value, for missing="category"."""

_AS = ("onehot", "codes")
_FILLS = ("mean", "median", "drop", "category")

Choice = str | float


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The kind of each column.

    Attributes:
        numbers: the columns of numbers.
        onehot, codes: the columns of categories, with the categories of each.
        missing: the choice for cells without a value, by column; the key None stands for every other column.
        target: the column of the target; None without a target.
        classes: the classes of the target; empty if it is a number.
        standardize: True to scale columns of numbers to mean 0 and standard deviation 1.
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
        """The columns to read, in the order of the features."""
        return [*self.numbers, *self.onehot, *self.codes]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: the column, or column=category."""
        return (*self.numbers, *(f"{name}={category}" for name, found in self.onehot.items() for category in found))


def chosen(missing: Mapping[str | None, Choice], name: str) -> Choice | None:
    """Return the choice for a column's cells without a value; None without a choice."""
    return missing.get(name, missing.get(None))


def categories_of(cells: Cells, name: str, wanted: Any, missing: Mapping[str | None, Choice]) -> tuple[str, ...]:
    """Return the categories of a column: those passed, or those that occur, sorted."""
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
) -> TablePlan:
    """Return the plan for the arguments of `csv`.

    Raises:
        BadData: a name that is not a column, or an invalid choice.
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
                    f"{what}={name!r} is not a column",
                    path=cells.path,
                    expected=f"expected one of {', '.join(names[:16])}",
                    remedy="correct the name, or pass the header= and columns= of the file",
                )
    for wanted in kinds.values():
        if isinstance(wanted, str) and wanted not in _AS:
            raise BadData(
                f'categorical must be "onehot", "codes" or a list of the categories, got {wanted!r}',
                remedy='pass "onehot" for columns of 0 and 1, "codes" for an embedding',
            )
    for choice in choices.values():
        if isinstance(choice, bool) or (isinstance(choice, str) and choice not in _FILLS):
            raise BadData(
                f'missing must be "drop", "mean", "median", "category" or a number, got {choice!r}',
                remedy='pass missing={"column": "median"}',
            )
    _refuse_unnamed(cells, drop)
    out = {goal, *drop}
    sorts = {name: categories_of(cells, name, wanted, choices) for name, wanted in kinds.items() if name not in out}
    return TablePlan(
        tuple(name for name in names if name not in out and name not in kinds),
        {name: found for name, found in sorts.items() if kinds[name] != "codes"},
        {name: found for name, found in sorts.items() if kinds[name] == "codes"},
        choices,
        goal,
        () if goal is None else _classes(cells, goal, classes),
        standardize,
    )


def _refuse_unnamed(cells: Cells, drop: Sequence[str]) -> None:
    """Raise an error for a column without a name that is not dropped."""
    names = cells.frame.columns
    for name in cells.unnamed:
        if name not in drop:
            raise BadData(
                f"column {names.index(name) + 1} has no name",
                path=cells.path,
                where="line 1",
                expected=f"expected a name for each column, got {', '.join(map(repr, names[:12]))}",
                remedy=f'pass drop=["{name}"] to drop the index that pandas writes, or all names in columns=',
            )


def _refuse_spellings(cells: Cells, target: str, found: set[str]) -> None:
    """Raise an error for two classes that are the same number, such as "1" and "1.0"."""
    known: dict[float, str] = {}
    for label in sorted(found, key=len):
        other = known.setdefault(float(label), label)
        if other != label:
            row = cells.frame[target].to_list().index(label)
            raise BadData(
                f"classes {other!r} and {label!r} are the same number",
                path=cells.path,
                where=cells.place(row, target),
                expected="expected one spelling of each class",
                remedy=f'pass replace={{"{label}": "{other}"}}, or the classes in classes=',
            )


def _column_at(cells: Cells, place: int) -> str:
    names = cells.frame.columns
    if not -len(names) <= place < len(names):
        raise BadData(
            f"target must be the index of one of {len(names)} columns, got {place}",
            path=cells.path,
            remedy="pass -1 for the last",
        )
    return str(names[place])


def _classes(cells: Cells, target: str, classes: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the classes of the target; () if it is a number."""
    import polars

    column = cells.frame[target]
    numbers = column.cast(polars.Float64, strict=False)
    text = (numbers.is_null() & column.is_not_null()).arg_true()
    held = len(column) - column.null_count()
    numeric = not len(text)
    if classes is None and numeric:
        return ()
    if classes is None and 2 * len(text) <= held:
        odd = column[text[0]]
        raise BadData(
            f"the target has {odd!r} among {held - len(text):,} numbers",
            path=cells.path,
            where=cells.place(text[0], target),
            expected="expected only numbers, or only text (each value is a class)",
            remedy=f'pass null_values=("", {odd!r}) and missing={{"{target}": "drop"}}, or classes="all" for classes',
        )
    if classes is None or classes == "all":
        found = set(column.drop_nulls().to_list())
        if numeric:
            _refuse_spellings(cells, target, found)
        return tuple(sorted(found, key=float if numeric else None))
    if isinstance(classes, str):
        raise BadData(
            f'classes must be a list or "all", got "{classes}"', remedy='pass "all" for all values that occur'
        )
    return tuple(map(str, classes))
