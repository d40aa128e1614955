"""Levels of inputs: values that were measured in steps, as of pixels, keep equal distances when they are scaled.

The distance and the offset of the levels show how the values of any samples were prepared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_ELEMENTS = 4096
_LEAST_VALUES = 16
_LEAST_LEVELS = 8
_MOST_LEVELS = 2048
"""Numbers of 32 bits are levels, too, but many more."""
_EVEN = 0.1
"""Largest relative distances of mean and standard deviation from those of values that are equally frequent."""
_OFF = 0.02
"""Largest distance of a value from its level, in distances of two levels."""
_CHANNELS = (2, 3, 4)
_PLACES = (0.53, 0.45, 0.37, 0.62)
"""Places of features that are read alone; the middle of a picture is seldom constant."""
_LARGEST = 1 << 18
_MOST_SAMPLES = 16
_BYTES = 4
_MEAN, _SPREAD = 1e-3, 1e-3
"""Largest distances of a mean from 0 and of a standard deviation from 1, for values scaled with these."""


class Levels(NamedTuple):
    """Levels of the values of a part of an argument."""

    part: str = ""
    """"channel 0", "feature 12"; empty for all values."""
    distance: float = 0.0
    """Distance of two levels; 0 if the values have none."""
    offset: float = 0.0
    """Place of the levels between multiples of their distance: 0 to 1."""
    mean: float = 0.0
    spread: float = 0.0
    even: bool = False
    """True if the levels are equally frequent, as of points that were chosen."""


def levels_of(torch: Any, given: Any) -> list[Levels]:
    """Return the levels of the channels of an argument, else of all values, else of some features.

    Args:
        torch: the module.
        given: a tensor with decimals.
    """
    found = [_levels(torch, part, values) for part, values in _parts(given)]
    if not any(one.distance for one in found):
        found = [_levels(torch, part, values) for part, values in _features(given)]
    return [one for one in found if one.distance] or [Levels()]


def scaled_by_itself(given: Any) -> str:
    """Return whether each "sample" has a mean of 0 and a standard deviation of 1, or the "batch"; empty if neither.

    Args:
        given: a tensor with decimals.
    """
    if not given.numel() or given.dim() < 2:
        return ""
    values = given.detach()
    some = _exact(values[:_MOST_SAMPLES].flatten(1))
    if _LEAST_VALUES <= some.shape[1] <= _LARGEST and _is_standard(some, 1):
        return "sample"
    rows = _exact(values.flatten(1)) if values.numel() <= _LARGEST else values[:0]
    if len(rows) < 2 or abs(float(rows.mean())) > _MEAN:
        return ""
    if rows.numel() >= _LEAST_VALUES and _is_standard(rows.reshape(1, -1), 1):
        return "batch"
    channels = rows.reshape(values.shape).transpose(0, 1).flatten(1)
    return "batch" if channels.shape[1] >= _LEAST_VALUES and _is_standard(channels, 1) else ""


def _exact(values: Any) -> Any:
    """Return values with at least 32 bits."""
    return values if values.element_size() >= _BYTES else values.float()


def _is_standard(values: Any, dim: int) -> bool:
    """Return True if all rows that vary have a mean of 0 and a standard deviation of 1."""
    means = values.mean(dim, keepdim=True)
    if bool((means.abs() > _MEAN).any()):
        return False
    spreads = (values - means).square().mean(dim).sqrt()
    varied = spreads > _SPREAD
    if not bool(varied.any()):
        return False
    count = values.shape[dim]
    corrected = spreads * (count / (count - 1)) ** 0.5
    return any(bool(((some - 1).abs()[varied] <= _SPREAD).all()) for some in (spreads, corrected))


def _parts(given: Any) -> Iterator[tuple[str, Any]]:
    dims = given.dim()
    for dim in (1, dims - 1) if dims > 2 else ():
        if given.shape[dim] in _CHANNELS:
            for channel in range(given.shape[dim]):
                yield f"channel {channel}", given.select(dim, channel)
            return
    yield "", given


def _features(given: Any) -> Iterator[tuple[str, Any]]:
    if given.dim() < 2:
        return
    count = given[0].numel()
    places = range(count) if count <= len(_PLACES) else sorted({int(place * count) for place in _PLACES})
    for place in places if count > 1 else ():
        yield f"feature {place}", given.detach().flatten(1)[:, place]


def _levels(torch: Any, part: str, given: Any) -> Levels:
    values = _thinned(given.detach()).double()
    levels, counts = torch.unique(values, return_counts=True)
    if len(values) < _LEAST_VALUES or len(levels) < _LEAST_LEVELS:
        return Levels(part)
    found = _distance(levels)
    if not found and bool((levels == 0).any()):  # padding, or a part that was erased after the scaling
        values = values[values != 0]
        levels, counts = torch.unique(values, return_counts=True)
        found = _distance(levels) if len(levels) >= _LEAST_LEVELS else 0.0
    if not found:
        return Levels(part)
    offset = float(levels[0]) / found % 1.0
    mean, spread = float(values.mean()), float(values.std(correction=0))
    even = _is_even(values, levels, counts)
    return Levels(part, _rounded(found), round(offset, 2) % 1.0, _rounded(mean), _rounded(spread), even)


def _is_even(values: Any, levels: Any, counts: Any) -> bool:
    """Return True for values at equal distances by choice, as of coordinates and points in time, or a part of them."""
    if bool((counts == counts[0]).all()):
        return True
    reach = float(levels[-1] - levels[0])
    middle = abs(float(values.mean() - (levels[0] + levels[-1]) / 2)) <= _EVEN * reach
    spread = reach * ((len(levels) + 1) / (len(levels) - 1) / 12) ** 0.5
    return middle and abs(float(values.std()) / spread - 1) <= _EVEN


def _thinned(values: Any) -> Any:
    """Return some of the values, from all samples if these are few."""
    for dim in range(values.dim()):
        excess = values.numel() // _ELEMENTS
        if excess > 1:
            step = min(excess, max(1, values.shape[dim] // _LEAST_VALUES)) | 1
            values = values[(slice(None),) * dim + (slice(None, None, step),)]
    return values.reshape(-1)


def _distance(levels: Any) -> float:
    """Return the distance of neighbouring levels; 0 if other values are among them."""
    reach = float(levels[-1] - levels[0])
    gaps = levels.diff()
    gaps = gaps[gaps > 1e-6 * max(abs(float(levels[0])), abs(float(levels[-1])))]  # equal but for rounding
    least = float(gaps.min()) if len(gaps) else 0.0
    if not least or not reach < _MOST_LEVELS * least:
        return 0.0
    least = reach / round(reach / least)  # less rounding than that of one gap
    counts = (levels - levels[0]) / least
    return least if bool(((counts - counts.round()).abs() <= _OFF).all()) else 0.0


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
