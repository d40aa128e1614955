"""Parameters of a program's own layers with values that no operation has written."""

from __future__ import annotations

import sys
from typing import Any

from truestep import source
from truestep.events import ParameterUnwritten, Site
from truestep.probes.context.scene import Scene

_MOST = 32
_SOURCES = ("empty", "Tensor(")
"""Names of the functions that return memory without values."""


def tell_unwritten(scene: Scene, module: Any, model: int, site: Site | None) -> None:
    """Emit the parameters of a model with a version of zero that a class of the program may have made of memory."""
    told = 0
    for prefix, layer in module.named_modules():
        owners = [
            (kind.__name__, path)
            for kind in type(layer).__mro__
            if (path := _file(kind)) and not scene.sites.is_installed(path)
        ]
        owners = [one for one in owners if any(word in "".join(source.read(one[1]).lines) for word in _SOURCES)]
        for name, parameter in vars(layer).get("_parameters", {}).items() if owners else ():
            if parameter is None or not parameter.requires_grad or not parameter.numel():
                continue
            if parameter.is_inference() or parameter._version:
                continue
            if told >= _MOST:
                return
            told += 1
            scene.tell(
                ParameterUnwritten,
                model=model,
                layer=prefix,
                name=name,
                owners=tuple(owners),
                files=tuple(scene.sites.own_files()),
                site=site,
            )


def _file(kind: type) -> str:
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
