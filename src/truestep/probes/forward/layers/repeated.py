"""Containers of a model that hold one layer with parameters in several places, as ``[layer] * 3`` makes them."""

from __future__ import annotations

import inspect
from collections import Counter
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
    told = 0
    for name, part in module.named_modules():
        if type(part).__name__ not in _CONTAINERS or told >= _MOST:
            continue
        places = Counter(id(one) for one in part._modules.values() if one is not None)
        layer = next(
            (one for one in part._modules.values() if places[id(one)] > 1 and any(True for _ in one.parameters())), None
        )
        if layer is None:
            continue
        path = _file_of(module.get_submodule(name.rpartition(".")[0]))
        told += 1
        scene.tell(
            LayersRepeated,
            model=model,
            name=name,
            kind=type(layer).__name__,
            times=places[id(layer)],
            path=path if path in scene.sites.own_files() else site.path if site is not None else "",
            site=site,
        )


def _file_of(module: Any) -> str:
    """Return the file that defines the class of a module; an empty string without one."""
    try:
        return inspect.getsourcefile(type(module)) or ""
    except (OSError, TypeError):
        return ""
