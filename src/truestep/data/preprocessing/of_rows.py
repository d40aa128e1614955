"""Preprocessing of rows of a table: columns, categories, fill values, means and standard deviations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from truestep.data.preprocessing.preparation import Preparation, Prepared
from truestep.data.tables.cells import Cells, Layout
from truestep.data.tables.columns import Reader
from truestep.data.tables.learnt import Learnt, features
from truestep.data.tables.plan import TablePlan
from truestep.errors import BadInputs


class Rows(Preparation):
    """Rows of a table as features, and codes of categories if there are any.

    Args:
        plan: the kind of each column.
        layout: the format of the file.
        learnt: statistics of the training rows.
        transform: as in `Preparation`.
    """

    kind = "table"

    def __init__(self, plan: TablePlan, layout: Layout, learnt: Learnt, transform: str = "") -> None:
        super().__init__(plan.classes, transform)
        self._plan, self._layout, self._learnt = plan, layout, learnt

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: the column, or column=category."""
        return self._plan.features

    @property
    def target(self) -> str | None:
        """The column that was predicted; None without one."""
        return self._plan.target

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Categories of each column of codes."""
        return dict(self._plan.codes)

    def describe(self) -> dict[str, Any]:
        """Return the arguments of the class, in types of JSON."""
        plan = dataclasses.asdict(self._plan)
        plan["missing"] = [[name, choice] for name, choice in self._plan.missing.items()]  # None is one of the names
        learnt = {name: getattr(self._learnt, name).tolist() for name in ("fill", "mean", "std")}
        return {"plan": _plain(plan), "layout": _plain(dataclasses.asdict(self._layout)), "learnt": learnt}

    @classmethod
    def from_description(cls, held: Mapping[str, Any], classes: Sequence[str], transform: str) -> Self:
        """Return the preprocessing that `describe` described."""
        plan, layout = held["plan"], held["layout"]
        made = TablePlan(
            numbers=tuple(plan["numbers"]),
            onehot={name: tuple(found) for name, found in plan["onehot"].items()},
            codes={name: tuple(found) for name, found in plan["codes"].items()},
            missing=dict(map(tuple, plan["missing"])),
            target=plan["target"],
            classes=tuple(plan["classes"]),
            standardize=plan["standardize"],
        )
        columns = layout["columns"]
        form = Layout(
            layout["separator"],
            layout["header"],
            None if columns is None else tuple(columns),
            tuple(layout["null_values"]),
            dict(layout["replace"]),
            layout["encoding"],
        )
        learnt = (torch.tensor(held["learnt"][name], dtype=torch.float64) for name in ("fill", "mean", "std"))
        return cls(made, form, Learnt(*learnt), transform)

    def read(self, path: Path) -> list[Prepared]:
        """Return the rows of a file with the columns of the training; others are ignored, the target is not needed.

        Raises:
            BadInputs: a column is missing.
            BadData: a cell does not fit: an unknown category, text among numbers, a missing value without a choice.
        """
        cells = Cells(path, self._layout)
        plan = dataclasses.replace(self._plan, target=None)
        lost = [name for name in plan.columns if name not in cells.frame.columns]
        if lost:
            raise BadInputs(
                f"{path} has no column {lost[0]!r}",
                expected=f"expected the columns of the training: {', '.join(plan.columns[:16])}",
                remedy="write the missing columns, with the names of the training",
            )
        reader = Reader(cells, plan)
        rows = reader.rows()
        kept = [row for row in range(cells.frame.height) if row not in reader.dropped]
        numbers = features(rows, plan, self._learnt)
        fields = (numbers, rows.codes) if plan.codes else (numbers,)
        lines = cells.lines()
        return [
            Prepared(
                str(path) if len(lines) == 1 else f"{path}, line {lines[row]}", tuple(field[at] for field in fields)
            )
            for at, row in enumerate(kept)
        ]


def _plain(value: Any) -> Any:
    """Return a value with lists for tuples, as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
