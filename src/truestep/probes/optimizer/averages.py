"""Measure the update of averages between two sampled steps: the shares of both models in it."""

from __future__ import annotations

import itertools
from collections.abc import Container
from typing import Any

from truestep.events import AverageMeasured, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import Held
from truestep.probes.optimizer.copies import Copies, pairs_loop
from truestep.seams.divided import is_divided

_MOST_PAIRS = 8
_MOST_PARAMETERS = 8
_ELEMENTS = 64
_EXACT = 1e-3
_ROUNDING = 1e-6


class Averages:
    """Keeps some values after a sampled step, and compares them with those before the next step."""

    def __init__(self, scene: Scene, copies: Copies) -> None:
        self._scene = scene
        self._copies = copies
        self._kept: list[tuple[list[Held], list[Held], dict[str, int], Any, Any]] = []
        self._met: set[tuple[int, ...]] = set()
        """Numbers of the pairs of models that were met."""
        self._loops: dict[str, Site | None] = {}
        """File to its first loop over a zip of parameters."""

    def look(self, moved: Container[int]) -> None:
        """Keep values of models outside optimizers and of the trained models like them."""
        self._kept = []
        for copy, trained, numbers in itertools.islice(self._copies.pairs(moved), _MOST_PAIRS):
            mine, theirs = self._some(copy), self._some(trained)
            if mine is not None and theirs is not None and mine.shape == theirs.shape:
                if tuple(numbers.values()) not in self._met:  # sample the next steps too: it was first called late
                    self._met.add(tuple(numbers.values()))
                    self._scene.changed()
                self._kept.append((copy, trained, numbers, mine, theirs))

    def measure(self) -> None:
        """Emit the updates that mix the kept values exactly, up to rounding."""
        kept, self._kept = self._kept, []
        for copy, trained, numbers, mine, theirs in kept:
            now, same = self._some(copy), self._some(trained)
            if now is None or same is None or not self._scene.torch.equal(same, theirs):
                continue
            apart, change = theirs - mine, now - mine
            both = self._scene.torch.stack([apart, mine], 1)
            shares = self._scene.torch.linalg.pinv(both) @ change
            left, size = float((change - both @ shares).norm()), float(change.norm())
            if size > _ROUNDING * float(mine.norm()) and left <= max(_EXACT * size, _ROUNDING * float(mine.norm())):
                take, excess = shares.tolist()
                total, take = float(f"{1 + excess:.4g}"), float(f"{take:.3g}")
                self._scene.tell(AverageMeasured, **numbers, take=take, total=total, site=self._loop())

    def _loop(self) -> Site | None:
        """Return the first loop of the program over a zip of parameters."""
        for path in self._scene.sites.own_files():
            if path not in self._loops:
                self._loops[path] = pairs_loop(path)
            if self._loops[path] is not None:
                return self._loops[path]
        return None

    def _some(self, held: list[Held]) -> Any:
        """Return some values of the first parameters in one vector; None if they cannot be read."""
        parts = []
        for one in held[:_MOST_PARAMETERS]:
            parameter = one.ref()
            if parameter is None or not parameter.is_floating_point() or not has_values(parameter):
                return None
            if is_divided(parameter) or not parameter.is_cpu:
                return None
            flat = parameter.detach().reshape(-1)
            parts.append(flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS].double())
        return self._scene.torch.cat(parts) if parts else None
