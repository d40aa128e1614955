"""Layers that run in two places of a module, while another layer of the same kind and shape in it runs in none."""

from __future__ import annotations

from typing import Any

from truestep.events import Site, TwinIdle
from truestep.probes.context.scene import Scene

_MOST_CALLS = 4096
"""Calls inside of a model that are counted."""
_MOST_TWINS = 8


class Twins:
    """Emits `TwinIdle` after a call of a model at a sampled step.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._calls = 0
        self._runs: dict[int, int] = {}
        """Id of a module to the number of its calls."""
        self._places: dict[int, tuple[Site | None, Site | None]] = {}
        """Id of a layer to the places of its first call, and of the first one elsewhere."""
        self._told: dict[tuple[int, ...], TwinIdle] = {}

    def begin(self, module: Any) -> None:
        """Handle the start of a call of a model."""
        self._calls, self._runs = 0, {id(module): 1}
        self._places.clear()

    def called(self, module: Any) -> None:
        """Handle the call of a module inside of it."""
        self._calls += 1
        if self._calls <= _MOST_CALLS:
            self._runs[id(module)] = self._runs.get(id(module), 0) + 1

    def ran(self, layer: Any, site: Site | None) -> None:
        """Record the place that calls a layer with parameters."""
        first, other = self._places.get(id(layer), (site, None))
        self._places[id(layer)] = first, site if other is None and site != first else other

    def end(self, module: Any) -> None:
        """Handle the end of the call of the model."""
        twice = {one for one, (_, other) in self._places.items() if other is not None}
        if not twice or self._calls > _MOST_CALLS:
            return
        for path, parent in module.named_modules():
            runs = self._runs.get(id(parent), 0)
            parts = parent._modules.items() if runs else ()
            for name, part in parts:
                if id(part) in twice and self._runs.get(id(part), 0) > runs:
                    self._compare(f"{path}." if path else "", parent, name, part)

    def _compare(self, path: str, parent: Any, name: str, part: Any) -> None:
        """Emit the parts of a module that did not run, and that are like one that ran twice."""
        for other, idle in parent._modules.items():
            if idle is None or id(idle) in self._runs or _form(idle) != _form(part):
                continue
            numbers = tuple(self._scene.hold(one).number for one in idle._parameters.values() if one is not None)
            if numbers not in self._told and len(self._told) < _MOST_TWINS:
                first, site = self._places[id(part)]
                event = TwinIdle(parameters=numbers, name=path + other, twin=path + name, first=first, site=site)
                self._told[numbers] = event
                self._scene.emit(event)


def _form(layer: Any) -> tuple[type, list[tuple[str, tuple[int, ...]]]]:
    """Return the class of a layer with the shapes of its parameters."""
    return type(layer), [(name, tuple(one.shape)) for name, one in layer._parameters.items() if one is not None]
