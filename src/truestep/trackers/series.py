"""The curves of a supervised run under the names that trackers show, and the places of findings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from truestep import source
from truestep.findings import Finding
from truestep.timeline import Curve, Timeline

_TITLES = {"loss": "loss", "rate": "learning_rate", "update": "update_ratio"}
"""Name of the curves that are written, by subject."""


@dataclass(frozen=True, slots=True)
class Series:
    """A curve of the run."""

    name: str
    points: tuple[tuple[int, float], ...]
    """Pairs of a step and a value."""


def series_of(timeline: Timeline | None, steps: int) -> Iterator[Series]:
    """Yield the curves; without values read behind the last step, which can be older ones."""
    if timeline is None:
        return
    chosen = {curve: points for curve, points in timeline.curves.items() if curve.subject in _TITLES}
    for curve, points in chosen.items():
        finite = tuple((step, value) for step, value in points if step < steps and math.isfinite(value))
        if finite:
            yield Series(name_of(curve, [other for other in chosen if other.subject == curve.subject]), finite)


def name_of(curve: Curve, same: list[Curve]) -> str:
    """Return the name of a curve; its line, optimizer or group is part of it if there are several."""
    name = f"truestep/{_TITLES[curve.subject]}"
    if len({other.number for other in same}) > 1:
        name += f"/optimizer_{curve.number}"
    if len({other.group for other in same if other.number == curve.number}) > 1:
        name += f"/group_{curve.group}"
    if len({other.site for other in same}) > 1 and curve.site is not None:
        name += f"/line_{curve.site.line}"
    return name


def place_of(finding: Finding) -> str:
    """Return path and line of a finding; empty without a place."""
    site = finding.primary.site
    return "" if site is None else f"{source.posix(source.displayed(site.path))}:{site.line}"


def first_step(finding: Finding) -> int:
    """Return the first step of a finding, 0 if unknown."""
    return finding.seen.first_step or 0
