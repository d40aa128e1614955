"""Values of losses at backward passes: finite or not, and those to report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from truestep.events import Event, LossNotFinite, LossRead, Site
from truestep.probes.backward.nan_search import whereabouts
from truestep.probes.backward.signs import source_of
from truestep.probes.backward.tape import risky_operations
from truestep.probes.context.scene import Scene

_MOST_BAD_LOSSES = 8
"""Number of losses that are not finite to examine; later ones are only counted."""
_EARLY = (0, 1, 2, 3, 10, 20, 50)
"""Steps after the first pass of a line at which its loss is read."""
_ROUNDING = 5e-6
"""Largest relative difference between two values of a loss that rounding errors explain."""


class LossValues:
    """Emits `LossRead` and `LossNotFinite`.

    Args:
        scene: the scene.

    Attributes:
        begun: line to the step of its first pass.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._bad: list[LossNotFinite] = []
        self.begun: dict[Site | None, int] = {}
        self._first: dict[Site | None, float] = {}
        """Line to the first value of its loss that was read."""

    def look(self, root: Any, node: Any, site: Site | None) -> None:
        """Examine the value of the loss: every time if this needs no synchronization, else at sampled steps."""
        scene = self._scene
        if root.is_cpu or (scene.sampling.on and not root.is_meta):
            if root.numel() != 1:
                return
        else:
            scene.losses.last = None
            return
        value = root.item()
        if value - value == 0.0:
            scene.losses.last = value if scene.scales.scaled_by is None else None
            scene.losses.site = site
            if scene.scales.scaled_by is None and (self._is_early(site) or scene.sampling.on):
                scene.losses.source[site] = source = source_of(node)
                scene.emit(self._read(value, site, source))
            return
        before, scene.losses.last = scene.losses.last, None
        if isinstance(value, complex) or (scene.scales.scaled_by is not None and math.isinf(value)):
            return
        scene.losses.bad = True
        if len(self._bad) >= _MOST_BAD_LOSSES:
            scene.emit(self._bad[-1])
            return
        event = LossNotFinite(
            site=site,
            value="nan" if math.isnan(value) else "inf" if value > 0 else "-inf",
            operations=risky_operations(node),
            before=float(f"{before:.3g}") if isinstance(before, float) else None,
            **whereabouts(scene, node, scene.sites.own(1)),
        )
        self._bad.append(event)
        scene.emit(event)

    def last(self) -> Iterator[Event]:
        """Yield the value of the latest loss."""
        losses = self._scene.losses
        if isinstance(losses.last, float | int) and not self._scene.scales.in_use and losses.site in losses.source:
            yield self._read(losses.last, losses.site, losses.source[losses.site])

    def _read(self, value: float, site: Site | None, source: dict[str, Any]) -> LossRead:
        first = self._first.setdefault(site, value)
        moved = abs(value - first) > _ROUNDING * abs(first)
        return LossRead(value=float(f"{value:.4g}"), moved=moved, site=site, **source)

    def _is_early(self, site: Site | None) -> bool:
        """Return True in some of the first steps with passes of a line, which may come late in a run."""
        step = self._scene.sampling.step
        return step - self.begun.setdefault(site, step) in _EARLY
