"""Classes with other numbers: a table of targets and predictions in which each class of the targets is another one."""

from __future__ import annotations

from collections import Counter

_LEAST = 40
"""Least number of predictions."""
_LEAST_OF_CLASS = 4
_LEAST_CLASSES = 3
"""Two classes that are exchanged are worse than guesses."""
_LEAST_MOVED = 2
_LEAST_OF_MOVED = 6
_SHARE = 0.75
"""Least share of the predictions that are right with the other numbers."""
_OF_CLASS = 0.7
"""The same in each class with another number."""

Confused = Counter[tuple[int, int]]
"""Class of the target and predicted class, to their number."""


def renumbered(confused: Confused) -> dict[int, int]:
    """Return the number that predictions have for each class of the targets; empty unless they all differ.

    >>> renumbered(Counter({(0, 2): 30, (1, 0): 28, (1, 1): 2, (2, 1): 30}))
    {0: 2, 1: 0, 2: 1}
    >>> renumbered(Counter({(0, 0): 30, (1, 1): 28, (1, 0): 2, (2, 2): 30}))
    {}
    """
    rows: dict[int, Counter[int]] = {}
    for (target, predicted), count in confused.items():
        rows.setdefault(target, Counter())[predicted] += count
    rows = {target: row for target, row in sorted(rows.items()) if row.total() >= _LEAST_OF_CLASS}
    others = {target: row.most_common(1)[0][0] for target, row in rows.items()}
    moved = [target for target, other in others.items() if target != other]
    total = confused.total()
    if total < _LEAST or len(others) < _LEAST_CLASSES or len(set(others.values())) < len(others):
        return {}
    if len(moved) < _LEAST_MOVED or any(
        rows[target].total() < _LEAST_OF_MOVED or rows[target][others[target]] < _OF_CLASS * rows[target].total()
        for target in moved
    ):
        return {}
    matched = sum(rows[target][other] for target, other in others.items())
    return others if matched >= _SHARE * total else {}
