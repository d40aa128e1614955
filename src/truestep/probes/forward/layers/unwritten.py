"""Parameters of a program's own layers with values that no operation has written.

A version counter does not count writes through ``.data`` or a NumPy array, and a copy begins at zero. On the CPU and
on accelerators, some values are therefore read when a layer registers a parameter, and compared at the first call.
"""

from __future__ import annotations

import sys
from typing import Any

from truestep import source
from truestep.events import ParameterUnwritten, Site
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values
from truestep.seams.fsdp import is_freed
from truestep.seams.refs import tensor_keys

_MOST = 32
_MOST_READ = 4096
_ELEMENTS = 16
_SOURCES = ("empty", "Tensor(")
"""Names of the functions that return memory without values."""


class Unwritten:
    """The parameters that the program's own layers register without a write to them.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._parameter = scene.torch.nn.Parameter
        self._first: Any = tensor_keys()
        """Parameters with their first values."""
        self._known: set[tuple[str, ...]] = set()
        """Classes, names and first values of parameters, which copies of them have too."""
        self._seen: set[tuple[str, str]] = set()
        """Classes and names of parameters that a layer has registered."""

    def registered(self, module: Any, name: str, parameter: Any) -> None:
        """Read some values of a parameter that a layer registers, unless it replaces another one."""
        if type(parameter) is not self._parameter or len(self._known) >= _MOST_READ:
            return
        if type(module).__module__.partition(".")[0] == "torch" or vars(module)["_parameters"].get(name) is not None:
            return
        if not any(self._own(kind) for kind in type(module).__mro__):
            return
        key = type(module).__qualname__, name
        self._seen.add(key)
        values = () if _version(parameter) else self._values(parameter)
        if values:
            self._first[parameter] = values
            self._known.add((*key, *values))

    def forget(self) -> None:
        """Forget the parameters: a session that is over leaves no reference to the program's tensors."""
        self._first.clear()

    def tell(self, module: Any, model: int, site: Site | None) -> None:
        """Emit the parameters of a model with a version of zero that its own classes may have made of memory."""
        scene, emitted = self._scene, 0
        by_kind: dict[type, tuple[tuple[str, str], ...]] = {}
        for prefix, layer in module.named_modules():
            if type(layer) not in by_kind:
                by_kind[type(layer)] = self._owners(type(layer))
            owners = by_kind[type(layer)]
            for name, parameter in vars(layer).get("_parameters", {}).items() if owners else ():
                if parameter is None or is_lazy(parameter) or not parameter.requires_grad or not parameter.numel():
                    continue
                if parameter.is_inference() or _version(parameter):
                    continue
                key, values = (type(layer).__qualname__, name), self._values(parameter)
                is_first = self._first.get(parameter, values) == values and (*key, *values) in self._known
                if key in self._seen and not is_first:  # copied, replaced, or written to by another name
                    continue
                if emitted >= _MOST:
                    return
                emitted += 1
                scene.tell(
                    ParameterUnwritten,
                    model=model,
                    layer=prefix,
                    name=name,
                    owners=owners,
                    files=tuple(scene.sites.own_files()),
                    compared=is_first and len(set(values[2:])) > 1,
                    site=site,
                )

    def _values(self, parameter: Any) -> tuple[str, ...]:
        """Return the shape, the type and some values as text; an empty tuple without values to read."""
        if type(parameter) is not self._parameter or not has_values(parameter):
            return ()
        if not parameter.numel() or is_freed(parameter):
            return ()
        flat = parameter.detach().reshape(-1)
        values = flat[:: flat.numel() // _ELEMENTS | 1][:_ELEMENTS]  # odd: not of one column alone
        return str(tuple(parameter.shape)), str(parameter.dtype), *map(repr, values.tolist())

    def _owners(self, kind: type) -> tuple[tuple[str, str], ...]:
        """Return the classes of the program that a layer is of, each with its file, if that allocates memory."""
        owners = [(one.__name__, path) for one in kind.__mro__ if (path := self._own(one))]
        return tuple(one for one in owners if any(word in "".join(source.read(one[1]).lines) for word in _SOURCES))

    def _own(self, kind: type) -> str:
        """Return the file of a class of the program; an empty string for a class of a library, or without a file."""
        path = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        return "" if not path or self._scene.sites.is_installed(path) else path


def _version(parameter: Any) -> int:
    return 0 if parameter.is_inference() else int(parameter._version)
