"""Rows in another order: whether given rows are the expected ones, those of other samples, or something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_DISTINCT = 0.9
"""Least share of different rows among values that do not repeat."""
_CERTAIN = -30.0
"""Logarithm of the probability at which values that do not repeat come in another order by chance."""
_MOST_AGREEING = 0.5
"""Largest share of rows that stay in their places, beyond those that do by chance."""
_MOST_NARROW = 16
_OF_SPREAD = 1e-4
_SHIFTS = 2
"""Positions by which the rows of a sequence can be longer than its targets."""
_LEAST_LEVELS = 2


class Order(NamedTuple):
    """A comparison of rows."""

    equal: bool
    chance: float = 0.0
    """Logarithm of the probability that rows that differ are in another order by chance."""
    known: bool = False
    """True for an order that a program can have written: a permutation that it holds, a roll, a flip."""
    counts: tuple[int, ...] = ()
    """Number of rows of each value, sorted."""


def compare(torch: Any, expected: Any, given: Any, indices: Callable[[], list[Any]] = list) -> Order | None:
    """Compare rows with the expected ones; None if they are neither these nor the same ones in another order.

    Args:
        torch: the module.
        expected: a table of numbers.
        given: a table of as many rows.
        indices: returns the permutations that the program holds.
    """
    found: list[Order] = []
    if expected.shape == given.shape and bool((expected == given).all()):
        return Order(True) if bool((given != given[:1]).any()) else None
    if _is_function(torch, expected, given):
        return Order(True)
    for one, two in _forms(torch, expected, given):
        order = _of_codes(torch, one, two, indices)
        if order is not None and order.equal:
            return order
        found += [] if order is None else [order]
    return min(found, key=lambda order: order.chance, default=None)


def is_read(torch: Any, values: Any, given: list[Any]) -> bool:
    """Return True if one of some arguments has values among its columns, also as one column for each class."""
    forms = [values]
    if values.shape[1] == 1:
        forms.append((values == torch.unique(values)).to(values.dtype))
    for table in given:
        for form in forms:
            wide, width = table.shape[1], form.shape[1]
            if (len(table) == len(form) and wide >= width <= _MOST_NARROW) or table.shape == form.shape:
                if all(bool((table == column[:, None]).all(0).any()) for column in form.T):
                    return True
    return False


def codes_of(torch: Any, *tables: Any) -> list[Any]:
    """Return a number for each row of some tables of equal width: equal rows have equal ones."""
    whole = torch.cat(tables)
    inverse = torch.unique(whole, dim=0, return_inverse=True)[1]
    return list(inverse.split([len(table) for table in tables]))


def ranks(torch: Any, table: Any) -> Any:
    """Return the ranks of the values within each column: a monotone function of the values does not change them."""
    columns = [torch.unique(column, return_inverse=True)[1] for column in table.T]
    return torch.stack(columns, 1).to(table.dtype)


def _forms(torch: Any, expected: Any, given: Any) -> Iterator[tuple[Any, Any]]:
    """Yield codes of both tables in the forms that programs give to targets."""
    wide, width = expected.shape[1], given.shape[1]
    if wide == width:
        yield _pair(torch, expected, given)
        if width == 1:
            if not _is_continuous(torch, expected):
                yield _pair(torch, expected - expected.min(), given - given.min())
            elif _is_affine(expected, given):
                yield expected[:, 0].argsort().argsort(), given[:, 0].argsort().argsort()
        elif _is_continuous(torch, expected):
            yield _pair(torch, ranks(torch, expected), ranks(torch, given))
    elif width == 1 and wide <= _MOST_NARROW:
        for column in expected.T:
            yield _pair(torch, column[:, None], given)
        if _is_one_hot(expected):
            yield _pair(torch, expected.argmax(1, keepdim=True), given)
    elif wide == 1 and _is_one_hot(given):
        yield _pair(torch, expected, given.argmax(1, keepdim=True).to(expected.dtype))
    elif 1 < width < wide <= width + _SHIFTS:
        for start in range(wide - width + 1):
            yield _pair(torch, expected[:, start : start + width], given)


def _pair(torch: Any, one: Any, two: Any) -> tuple[Any, Any]:
    first, second = codes_of(torch, one.double(), two.double())
    return first, second


def _is_continuous(torch: Any, table: Any) -> bool:
    return len(torch.unique(table, dim=0)) >= _DISTINCT * len(table)


def _is_one_hot(table: Any) -> bool:
    """Return True if each row has one larger value, and all others are equal, as after label smoothing."""
    some = table.sort(1, descending=True)[0]
    return bool((some[:, 0] > some[:, 1]).all()) and bool((some[:, 1] == some[:, -1]).all())


def _is_affine(expected: Any, given: Any) -> bool:
    """Return True if the values of two columns, each sorted, are the same but for a scale and a shift."""
    one, two = expected[:, 0].double().sort()[0], given[:, 0].double().sort()[0]
    one, two = one - one.mean(), two - two.mean()
    size = float(one.square().sum())
    if not size > 0 or not float(two.square().sum()) > 0:
        return False
    gaps = one.diff()
    if float(gaps.max() - gaps.min()) <= _OF_SPREAD * float(gaps.max()):
        return False  # evenly spaced numbers are like all others of this kind
    for other in (two, -two.flip(0)):
        slope = float((one * other).sum()) / size
        if slope > 0 and float((other - slope * one).abs().max()) <= _OF_SPREAD * float(other.abs().max()):
            return True
    return False


def _is_function(torch: Any, expected: Any, given: Any) -> bool:
    """Return True if given values are a function of expected ones that repeat: classes with other numbers."""
    one, two = codes_of(torch, expected)[0], codes_of(torch, given)[0]
    levels = int(one.max()) + 1
    if levels * 2 > len(one) or int(two.max()) + 1 < _LEAST_LEVELS:
        return False
    pairs = torch.unique(torch.stack([one, two], 1), dim=0)
    return len(pairs) == levels


def _of_codes(torch: Any, one: Any, two: Any, indices: Callable[[], list[Any]]) -> Order | None:
    """Compare codes of rows."""
    rows, levels = len(one), torch.unique(one)
    if len(levels) < _LEAST_LEVELS:
        return None
    if bool((one == two).all()):
        return Order(True)
    if not bool((one.sort()[0] == two.sort()[0]).all()):
        return None
    counts = torch.bincount(one)
    counts = counts[counts > 0].double()
    shares = counts / rows
    base = float(shares.square().sum())
    agreeing = float((one == two).double().mean())
    if (agreeing - base) / (1 - base) >= _MOST_AGREEING:
        return None
    orders = math.lgamma(rows + 1) - float(torch.lgamma(counts + 1).sum())
    numbers = tuple(sorted(int(count) for count in counts.tolist()))
    if len(levels) >= _DISTINCT * rows:
        return Order(False, _CERTAIN, known=True, counts=numbers)
    for tried, other in enumerate(_orders(torch, one, indices())):
        if bool((other == two).all()):
            return Order(False, math.log(tried + 1 + rows) - orders, known=True, counts=numbers)
    alike = orders + float((counts * shares.log()).sum())
    return Order(False, alike, counts=numbers)


def _orders(torch: Any, one: Any, indices: list[Any]) -> Iterator[Any]:
    """Yield the codes in the orders that programs write: permutations, rolls, a flip, regroupings."""
    rows = len(one)
    for index in indices:
        yield one[index]
    yield one.flip(0)
    for group in range(2, rows // 2 + 1):
        if rows % group == 0:
            yield one.reshape(group, -1).T.reshape(-1)
            yield one.reshape(group, -1).flip(1).reshape(-1)
            yield one.reshape(group, -1).flip(0).reshape(-1)
    for by in range(1, rows):
        yield one.roll(by)
