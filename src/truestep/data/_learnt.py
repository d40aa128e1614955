"""What is learnt from the training rows of a table, and the features that it makes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from truestep.data._columns import Rows
from truestep.data._plan import Plan, chosen
from truestep.errors import BadData


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is learnt from the training rows: float64, shape (columns,)."""

    fill: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor


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
    mean = filled.mean(0)
    std = filled.std(0, correction=0) if plan.numbers else mean  # torch warns of a deviation of no column
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
