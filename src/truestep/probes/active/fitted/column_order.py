"""Columns of the table of an evaluation, next to those of the training: in the same order, or in another one.

Two samples of one distribution have distribution functions with a distance of about the square root of 1/n + 1/m, and
so have their rank correlations. Columns in another order are correlated with the wrong ones in their places, and with
the right ones in those of the columns that they are nearest to.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_MOST_COLUMNS = 64
_MOST_RANKS = 256
_MOST_ROWS = 1 << 14
_NEAR = 2.0
"""Largest distance of columns that are the same, in that of samples of one kind."""
_RELATED = 1.3
"""Largest distance of the correlations of columns that are the same, over all pairs."""
_FAR, _LEAST_FAR = 3.5, 0.25
"""Least distance of columns in the places of others."""
_OFF, _TIMES = 2.0, 2.5
"""Least distance of their correlations, also in that of the order which fits."""
_LEAST_MOVED = 3
_MANY = 6
"""Least number of columns with correlations that fit no other columns by chance."""
_MOST_NOISE = (0.15, 0.2)
"""Largest distance of samples of one kind, with few and with many columns."""
_ROUNDING = 1e-3
_MOST_EXCHANGES = 200
_LEAST_GAIN = 1e-9


class Ranks(NamedTuple):
    """The distributions of the columns of a table.

    Attributes:
        rows: number of rows of the table.
        values: values of each column in order, evenly distributed over their ranks (columns, values).
        related: rank correlations of the columns.
    """

    rows: int
    values: Any
    related: Any


class Order(NamedTuple):
    """The order of the columns of an evaluation.

    Attributes:
        fits: whether all are as those of the training in the same places.
        moved: number of columns in the places of others; 0 if not all are as some column of the training.
    """

    fits: bool = False
    moved: int = 0


def ranks_of(torch: Any, table: Any) -> Ranks | None:
    """Return the distributions of the columns of a table (rows, columns); None for other arrays and wide ones."""
    if table.dim() != 2 or not _LEAST_MOVED <= table.shape[1] <= _MOST_COLUMNS:
        return None
    table = table[:_MOST_ROWS].double()
    rows = len(table)
    ordered, order = table.sort(0)
    if bool((ordered[0] == ordered[-1]).any()):  # a constant column is related to no other one
        return None
    places = torch.linspace(0, rows - 1, min(rows, _MOST_RANKS)).round().long()
    ranks = _shared(torch, ordered).gather(0, order.argsort(0))
    ranks = ranks - ranks.mean(0)
    ranks /= ranks.square().sum(0).sqrt()
    return Ranks(rows, ordered[places].T.contiguous(), ranks.T @ ranks)


def order_of(torch: Any, given: Ranks, trained: Ranks) -> Order:
    """Return the order of the columns of an evaluation, next to those of the training."""
    columns = len(given.values)
    noise = (1 / given.rows + 1 / trained.rows) ** 0.5
    if columns != len(trained.values):
        return Order()
    pairs = _distances(torch, given.values, trained.values)
    place = torch.arange(columns)
    before = _misfit(given, trained, place)
    if before <= _NEAR * noise and bool((pairs.diagonal() <= _NEAR * noise).all()):
        return Order(fits=True)
    found = _improved(torch, given, trained, pairs, _assigned(torch, pairs + _unlike(given, trained)))
    after, moved = _misfit(given, trained, found), int((found != place).sum())
    same = after <= _RELATED * noise and bool((pairs[place, found] <= _NEAR * noise).all())
    related = columns >= _MANY and before >= max(_TIMES * after, _OFF * noise, _LEAST_FAR)
    clear = noise <= _MOST_NOISE[columns >= _MANY]
    apart = int((pairs.diagonal() >= max(_FAR * noise, _LEAST_FAR)).sum()) >= _LEAST_MOVED
    return Order(moved=moved if same and clear and moved >= _LEAST_MOVED and (related or apart) else 0)


def _shared(torch: Any, ordered: Any) -> Any:
    """Return the ranks of values in order; equal values have the rank in their middle."""
    columns = ordered.T.contiguous()
    first, last = (torch.searchsorted(columns, columns, right=side) for side in (False, True))
    return (first + last).T.double()


def _misfit(given: Ranks, trained: Ranks, order: Any) -> float:
    """Return the distance of the correlations of all pairs of columns, if those of the training are in an order."""
    columns = len(order)
    square = (given.related - trained.related[order][:, order]).square().sum() / (columns * (columns - 1))
    return float(square.sqrt())


def _unlike(given: Ranks, trained: Ranks) -> Any:
    """Return for each pair of columns how far their correlations are, sorted, as if those with others were in order."""
    some, others = (one.related.sort(1).values for one in (given, trained))
    return (some[:, None] - others[None]).square().mean(2).sqrt()


def _improved(torch: Any, given: Ranks, trained: Ranks, pairs: Any, order: Any) -> Any:
    """Return an order after exchanges of two columns, each the one that makes correlations and columns most alike."""
    order, columns = order.clone(), len(order)
    cost = columns * pairs.square()
    for _ in range(_MOST_EXCHANGES):
        one, other = given.related, trained.related[order][:, order]
        joint, own = one @ other, (one * other).sum(1)
        gain = joint + joint.T - own[:, None] - own[None] + 2 * (1 - one) * (1 - other)
        placed = cost[:, order]
        gain = 4 * gain + placed.diagonal()[:, None] + placed.diagonal()[None] - placed - placed.T
        first, second = divmod(int(gain.argmax()), columns)
        if float(gain[first, second]) <= _LEAST_GAIN:
            break
        order[[first, second]] = order[[second, first]]
    return order


def _assigned(torch: Any, pairs: Any) -> Any:
    """Return for each column another one at a small distance, each once: the nearest pairs first."""
    left, columns = pairs.clone(), len(pairs)
    found = torch.empty(columns, dtype=torch.long)
    for _ in range(columns):
        row, column = divmod(int(left.argmin()), columns)
        found[row] = column
        left[row], left[:, column] = float("inf"), float("inf")
    return found


def _distances(torch: Any, given: Any, trained: Any) -> Any:
    """Return the largest distance of the distribution functions of each pair of columns; few values may be rounded."""
    columns, near = len(trained), _ROUNDING * trained.std(1, keepdim=True)
    found = torch.empty(columns, columns, dtype=torch.float64)
    for at, values in enumerate(given):
        some = values.expand(columns, -1).contiguous()
        points = torch.cat([some, trained], 1)
        below, above = points - near, points + near
        (low, high), (least, most) = (
            [torch.searchsorted(one, ends, right=True).double() / one.shape[1] for ends in (below, above)]
            for one in (some, trained)
        )
        found[at] = (low - most).maximum(least - high).amax(1).clamp_min(0.0)
    return found
