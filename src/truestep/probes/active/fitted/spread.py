"""Columns of measured values, and the statistics that they can be scaled with."""

from __future__ import annotations

from typing import Any

_LEAST_DISTINCT = 8
_MOST_DISTINCT = 1 << 12
_REGULAR = 1e-3
"""Largest difference of the distances between the values of a grid, as a part of them."""
_SAME = 0.01
"""Least change of a column: others were not scaled, or were published as scaled."""
_ROUNDING = 2e-5
_OF_CENTRE = 2e-6
_LARGEST = 0.01
_MOST_AT_BOUND = 2
"""Largest number of rows with the least or the largest value: more are at a limit that is known without the data."""
HOW = "standard", "sample", "range", "symmetric", "robust", "centred"
BOUNDED = "range", "symmetric"


def kind_of(column: Any) -> str:
    """Return "measured" for a column of many values, "grid" if they have one distance, and "" for few of them."""
    if not bool(column.isfinite().all()):
        return ""
    values = column[:: max(1, len(column) // _MOST_DISTINCT)].unique()
    if len(values) < _LEAST_DISTINCT:
        return ""
    steps = values.diff()
    return "measured" if float(steps.amax() - steps.amin()) > _REGULAR * float(steps.amax()) else "grid"


def statistics(column: Any, how: str) -> tuple[float, float]:
    """Return the centre and the spread of a column that it can be scaled with; a spread of 0 if it cannot."""
    if how in ("standard", "sample"):
        return float(column.mean()), float(column.std(correction=int(how == "sample")))
    if how == "centred":
        return float(column.mean()), 1.0
    if how == "robust":
        ordered = column.sort().values
        middle = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        low, high = (_quantile(ordered, share) for share in (0.25, 0.75))
        return middle, high - low
    least, most = float(column.amin()), float(column.amax())
    if _is_known(least) and _is_known(most):
        return 0.0, 0.0
    if max(int((column == bound).sum()) for bound in (least, most)) > _MOST_AT_BOUND:
        return 0.0, 0.0
    return (least, most - least) if how == "range" else ((least + most) / 2, (most - least) / 2)


def tolerance(centre: float, spread: float) -> float:
    """Return the largest error of a value that was scaled in single precision; 0 for a column that is not scaled."""
    if spread <= 0 or (abs(centre) <= _SAME * spread and abs(spread - 1) <= _SAME):
        return 0.0
    within = _ROUNDING * spread + _OF_CENTRE * abs(centre)
    return within if within <= _LARGEST * spread else 0.0


def _quantile(ordered: Any, share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low]) + (place - low) * float(ordered[high] - ordered[low])


def _is_known(bound: float) -> bool:
    """Return True for a bound with at most two digits, such as 0, 100 or 0.5: it can be that of a scale."""
    return float(f"{bound:.1e}") == bound or float(f"{bound:.1e}") == round(bound, 6)
