"""Containers of a model that hold one layer with parameters in several places, as ``[layer] * 3`` makes them."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from truestep.events import LayersRepeated, Site
from truestep.probes.context.scene import Scene

_CONTAINERS = ("ModuleList", "Sequential")
_MOST = 4


def look_for_repeats(scene: Scene, module: Any, model: int, site: Site | None) -> None:
    """Emit the containers of a new model that hold one layer several times.

    Args:
        scene: receives the events.
        module: the model.
        model: its number.
        site: line that calls the model.
    """
    for name, layer, times in islice(_repeated(module), _MOST):
        path = _file_of(module.get_submodule(name.rpartition(".")[0]))
        scene.tell(
            LayersRepeated,
            model=model,
            name=name,
            kind=type(layer).__name__,
            times=times,
            path=path if path in scene.sites.own_files() else site.path if site is not None else "",
            site=site,
        )


def _repeated(module: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield the path of each container with a layer in several places, this layer, and the number of its places."""
    for name, part in module.named_modules():
        if type(part).__name__ in _CONTAINERS:
            layers = [one for one in part._modules.values() if one is not None]
            places = Counter(map(id, layers))
            found = (one for one in layers if places[id(one)] > 1 and next(one.parameters(), None) is not None)
            layer = next(found, None)
            if layer is not None:
                yield name, layer, places[id(layer)]


def _file_of(module: Any) -> str:
    """Return the file that defines the class of a module; an empty string without one."""
    try:
        return inspect.getsourcefile(type(module)) or ""
    except (OSError, TypeError):
        return ""
