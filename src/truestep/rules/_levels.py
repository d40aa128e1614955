"""Levels of inputs: they show if training and evaluation were prepared in the same way, also for different samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from truestep.events import LevelsRead, Site

_EQUAL = 0.02
"""Relative difference of two distances that is rounding, and difference of two offsets."""
_ALIKE = 1.5
"""Largest ratio of the standard deviations of samples of one kind, in levels; least ratio of another preparation."""
_APART = 0.4
"""Least distance of the means of another preparation, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The levels that all values of some calls are on."""

    distance: float
    offset: float
    mean: float
    spread: float

    def is_scaled_as(self, other: Grid) -> bool:
        """Return True if values on these levels were scaled as those on others, as far as the levels show."""
        same = abs(self.distance - other.distance) <= _EQUAL * other.distance
        between = abs(self.offset - other.offset)
        return same and min(between, 1 - between) <= _EQUAL

    def is_far_from(self, other: Grid) -> bool:
        """Return True if the same kind of values was scaled in another way, so that the results differ clearly."""
        if self.is_scaled_as(other) or not min(self.spread, other.spread) > 0:
            return False
        ratio = self.spread / other.spread
        alike = ratio / (self.distance / other.distance)
        if not 1 / _ALIKE <= alike <= _ALIKE:
            return False
        apart = abs(self.mean - other.mean) >= _APART * other.spread
        return apart or not 1 / _ALIKE < ratio < _ALIKE


def by_line(reads: Iterable[LevelsRead]) -> list[list[LevelsRead]]:
    """Return the reads of each line: the inputs of a dry run say nothing about those of an evaluation."""
    lines: dict[Site | None, list[LevelsRead]] = {}
    for read in reads:
        lines.setdefault(read.site, []).append(read)
    return list(lines.values())


def any_scaled_as(trained: dict[str, Grid], lines: Iterable[list[LevelsRead]]) -> bool:
    """Return True if the calls of a line are on values that were scaled as those of the training."""
    return any(
        part in trained and grid.is_scaled_as(trained[part]) for line in lines for part, grid in grids(line).items()
    )


def grids(reads: Iterable[LevelsRead]) -> dict[str, Grid]:
    """Return the levels of each part of an argument; none if the values of a call have no levels."""
    parts: dict[str, list[LevelsRead]] = {}
    for read in reads:
        parts.setdefault(read.part, []).append(read)
    if any(not read.distance for read in parts.get("", ())):
        return {}
    calls = max(map(len, parts.values()), default=0)
    found = {part: _grid(some) for part, some in parts.items() if len(some) == calls}
    return {part: grid for part, grid in found.items() if grid is not None}


def _grid(reads: list[LevelsRead]) -> Grid | None:
    """Return the levels that the values of all calls are on; None if there are none.

    Few values can miss every second level: the distance is a multiple of another call's then.
    """
    least = min(read.distance for read in reads)
    if not least:
        return None
    for read in reads:
        times = read.distance / least
        if abs(times - round(times)) > _EQUAL * times:
            return None
    fine = next(read for read in reads if read.distance == least)
    mean = sum(read.mean for read in reads) / len(reads)
    square = sum(read.spread**2 + (read.mean - mean) ** 2 for read in reads) / len(reads)
    offsets = [read.offset for read in reads if read.distance <= (1 + _EQUAL) * least]
    if any(min(abs(one - fine.offset), 1 - abs(one - fine.offset)) > _EQUAL + 0.01 for one in offsets):
        return None
    return Grid(least, fine.offset, mean, square**0.5)
