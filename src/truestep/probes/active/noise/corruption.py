"""Random corruption of samples, as opposed to other changes of them, by the statistics of a batch.

Flips, crops, mixtures of two samples and shades keep a structure. The values of noise are not related to each other,
neither along a row nor down a column, nor to the samples, which are related.
"""

from __future__ import annotations

from typing import Any

_LEAST_ROWS = 8
_LEAST_PLACES = 8
_MOST_ROWS = 128
_MOST_PLACES = 128
_LEAST_SHARE = 0.2
"""Least deviation of noise as a share of that of the samples: less is a dequantisation, or an augmentation."""
_MOST_SHARE = 20.0
_CHANGED = 0.9
"""Least share of values that noise changes."""
_RELATED = 2.5
_UNRELATED = 1.4
"""Mean squared correlation, in units of that of values without a relation."""
_NEAR = 0.03
_SIGMAS = 5
_MOST_LEVELS = 256
_LEAST_HIDDEN, _MOST_HIDDEN = 0.05, 0.95
_LEAST_JUDGED = 256
_SPREAD = 0.1
"""Least distance of a value from the bounds, as a share of their distance, that is left by most noise."""
_HALF = 0.15


def corruption(torch: Any, given: Any, clean: Any) -> str:
    """Return how samples were corrupted at random, "noise", "zeros" or "values"; empty for another change.

    "values" are one or two, such as black and white, at random places.

    Args:
        torch: the module.
        given: the corrupted samples, in rows.
        clean: the samples.
    """
    rows, places = given.shape
    if rows < _LEAST_ROWS or places < _LEAST_PLACES:
        return ""
    first = max(0, places - _MOST_PLACES) // 2
    given = given[:_MOST_ROWS, first : first + _MOST_PLACES].double()
    clean = clean[:_MOST_ROWS, first : first + _MOST_PLACES].double()
    if not bool(given.isfinite().all() & clean.isfinite().all()) or not _is_related(clean):
        return ""
    change = given - clean
    put = given[change != 0].unique()
    if 0 < len(put) <= 2 or _is_scaled(given, clean):
        put = put if len(put) <= 2 else put.new_zeros(1)
        how = "values" if bool((put != 0).any()) else "zeros"
        return how if _is_random_mask(torch, given, clean, put) else ""
    share = float(change.std() / clean.std())
    if not _LEAST_SHARE <= share <= _MOST_SHARE:
        return ""
    return "noise" if _is_noise(change, clean) or _is_cut_noise(torch, given, clean) else ""


def is_dequantised(given: Any, clean: Any) -> bool:
    """Return True for a change between the levels of samples with few levels, which are made continuous so."""
    levels, change = clean.unique(), given - clean
    if not 2 <= len(levels) <= _MOST_LEVELS or not _is_related(clean.flatten(1)):  # a random mask is not related
        return False
    return bool(change.max() - change.min() <= 1.01 * levels.diff().min())


def _is_noise(change: Any, clean: Any) -> bool:
    """Return True if a change differs from value to value, without a relation to others and to the samples."""
    if float((change != 0).double().mean()) < _CHANGED:
        return False
    return _is_unrelated(change) and abs(_correlation(change, clean)) < _limit(change.numel())


def _is_cut_noise(torch: Any, given: Any, clean: Any) -> bool:
    """Return True for noise that was cut to the range of the samples afterwards: ``(x + noise).clamp(0, 1)``.

    Of the samples at a bound, about half are as before, and the others have all kinds of values.
    """
    low, high = given.min(), given.max()
    if not bool((clean >= low).all() & (clean <= high).all()):
        return False
    for bound, inner in ((low, given > low), (high, given < high)):
        at = clean == bound
        count = int(at.sum())
        if count < _LEAST_JUDGED:
            continue
        left = inner[at]
        various = given[at][left].unique().numel() >= 0.9 * int(left.sum())
        if abs(float(left.double().mean()) - 0.5) > _HALF or not various:
            return False
        return _is_unrelated_where(torch, inner.double(), at)
    middle = (clean - (low + high) / 2).abs() < (high - low) * (0.5 - 3 * _SPREAD)
    change = given - clean
    if int(middle.sum()) < _LEAST_JUDGED or float((change[middle] != 0).double().mean()) < _CHANGED:
        return False
    cut = ((given == low) | (given == high)).double().mean()
    near = abs(_correlation(change[middle], clean[middle])) < 3 * _limit(int(middle.sum()))
    return float(cut) > 0.01 and near and _is_unrelated_where(torch, change, middle)


def _is_scaled(given: Any, clean: Any) -> bool:
    """Return True if all values are zero or one multiple of the samples, as of a dropout."""
    kept = (given != 0) & (clean != 0)
    if not bool(kept.any()) or bool((given[~kept] != 0).any()):
        return False
    ratio = given[kept] / clean[kept]
    return bool(((ratio - ratio[0]).abs() < 1e-4 * ratio[0].abs()).all())


def _is_random_mask(torch: Any, given: Any, clean: Any, put: Any) -> bool:
    """Return True if one or two values are at random places, where the samples have other ones."""
    at = ~torch.isin(clean, put)
    hidden = torch.isin(given, put).double()
    if int(at.sum()) < _LEAST_JUDGED:
        return False
    share = float(hidden[at].mean())
    if not _LEAST_HIDDEN <= share <= _MOST_HIDDEN:
        return False
    near = abs(_correlation(hidden[at], clean[at])) < _limit(int(at.sum()))
    return near and _is_unrelated_where(torch, hidden, at)


def _is_related(table: Any) -> bool:
    """Return True if the columns of a table are related, or have different means."""
    means = table.mean(0)
    if float(means.var()) > 0.2 * float(table.var()):
        return True
    return bool(_squared(table) > _RELATED / (len(table) - 1))


def _is_unrelated(table: Any) -> bool:
    """Return True if neither columns nor rows of a table are related, and their means are alike."""
    table = table - table.mean()
    rows, places = table.shape
    of_columns = float(table.mean(0).square().mean() * rows / table.square().mean())
    of_rows = float(table.mean(1).square().mean() * places / table.square().mean())
    alike = of_columns < 1 + 8 / places**0.5 and of_rows < 1 + 8 / rows**0.5
    if not alike or _squared(table) >= _bound(rows, places):
        return False
    sizes = table.square().mean(0).sqrt()  # noise in proportion to the samples has another size in each column
    return _squared((table / sizes.where(sizes > 0, sizes.new_ones(()))).T) < _bound(places, rows)


def _bound(samples: int, series: int) -> float:
    """Return the limit of the mean squared correlation of series of random numbers."""
    pairs = series * (series - 1) / 2
    return float((1 + max(_UNRELATED - 1, _SIGMAS * (2 / pairs) ** 0.5)) / (samples - 1))


def _is_unrelated_where(torch: Any, table: Any, at: Any) -> bool:
    """Return True if values at some places are not related to those at the next ones, in a row and down a column.

    Places in the next three are compared, of a row also at the distance of the sides of small pictures.
    """
    mean = table[at].mean()
    table = torch.where(at, table - mean, torch.zeros_like(table))
    size = float(table.square().sum() / at.sum())
    rows, places = table.shape
    shifts = [(0, by) for by in (1, 2, 3, 8, 16, 28, 32) if by < places] + [(by, 0) for by in (1, 2, 3) if by < rows]
    for down, along in shifts:
        one, two = table[down:, along:], table[: rows - down, : places - along]
        both = int((at[down:, along:] & at[: rows - down, : places - along]).sum())
        if both >= _LEAST_JUDGED / 4 and abs(float((one * two).sum())) / both / size > _limit(both):
            return False
    of_rows = table.sum(1).square() / (size * at.sum(1).clamp(min=1))
    of_columns = table.sum(0).square() / (size * at.sum(0).clamp(min=1))
    return bool(of_rows.mean() < 1 + 8 / rows**0.5) and bool(of_columns.mean() < 1 + 8 / places**0.5)


def _squared(table: Any) -> float:
    """Return the mean squared correlation of the columns of a table."""
    table = table - table.mean(0)
    lengths = table.square().sum(0)
    table = table[:, lengths > 0] / lengths[lengths > 0].sqrt()
    columns = table.shape[1]
    if columns < 2:
        return 0.0
    squares = (table.T @ table).square()
    return float((squares.sum() - squares.diagonal().sum()) / (columns * (columns - 1)))


def _correlation(one: Any, two: Any) -> float:
    one, two = one - one.mean(), two - two.mean()
    size = float(one.square().sum() * two.square().sum()) ** 0.5
    return float((one * two).sum()) / size if size else 0.0


def _limit(count: int) -> float:
    """Return the largest correlation of so many pairs of values without a relation."""
    return float(_SIGMAS / count**0.5 + _NEAR)
