"""Statistics of the training rows of a table, and the features computed with them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from truestep.data.tables.columns import TableRows
from truestep.data.tables.plan import TablePlan, chosen
from truestep.errors import BadData


@dataclass(frozen=True, slots=True)
class Learnt:
    """Statistics of the training rows: each float64 of shape (columns,)."""

    fill: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor


def learn(rows: TableRows, plan: TablePlan) -> Learnt:
    """Return the fill values, means and standard deviations of the columns of numbers.

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
                raise BadData(f"column {name!r} has no values", remedy=f'pass drop=["{name}"]')
            fill[at] = held.mean() if choice == "mean" else _median(held)
        elif isinstance(choice, int | float):
            fill[at] = float(choice)
    filled = torch.where(numbers.isnan(), fill, numbers)
    mean = filled.mean(0)
    std = filled.std(0, correction=0) if plan.numbers else mean  # torch warns about zero columns
    return Learnt(fill, mean, torch.where(std > 0, std, torch.ones_like(std)))


def _median(values: torch.Tensor) -> torch.Tensor:
    """Return the median, the mean of the two middle values if their number is even; torch returns the lower one."""
    ordered = values.sort().values
    return (ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2


def features(rows: TableRows, plan: TablePlan, learnt: Learnt) -> torch.Tensor:
    """Return the features, float32 of shape (rows, features): numbers first, then one column per category."""
    numbers = rows.numbers.to(torch.float64)
    filled = torch.where(numbers.isnan(), learnt.fill, numbers)
    if plan.standardize:
        filled = (filled - learnt.mean) / learnt.std
    parts = [filled.to(torch.float32)]
    for at, found in enumerate(plan.onehot.values()):
        parts.append(torch.nn.functional.one_hot(rows.onehot[:, at], len(found)).to(torch.float32))
    return torch.cat(parts, 1)
