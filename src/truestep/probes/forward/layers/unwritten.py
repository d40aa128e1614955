"""Parameters of a program's own layers with values that no operation has written.

A version counter does not count writes through ``.data`` or a NumPy array, and a copy begins at zero. On the CPU and
on accelerators, some values are therefore read when a layer registers a parameter, and compared before the first
update: a model can be called, and even differentiated, before its weights are initialised or loaded.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from truestep import source
from truestep.events import ParameterUnwritten, Site
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values
from truestep.seams.fsdp import is_freed
from truestep.seams.refs import Ref, tensor_keys

_MOST = 32
_MOST_READ = 4096
_ELEMENTS = 16
_MOST_LOOKS = 32
"""Backward passes after which gradients are looked for."""
_LEAST_OF_EACH = 3
"""Elements that an update by hand must raise, and lower, against their gradients."""
_SOURCES = ("empty", "Tensor(")
"""Names of the functions that return memory without values."""


class _Waiting(NamedTuple):
    """A parameter of a model that was called, which no operation that is counted has written to."""

    parameter: Ref
    layer: Ref
    fields: dict[str, Any]
    """Fields of the event."""


class _Trained(NamedTuple):
    """A parameter of memory that a backward pass gave a gradient to."""

    one: _Waiting
    compared: bool
    values: tuple[list[Any], list[Any]]
    """Some values of it and of its gradient; none for gradients that are not dense."""


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
        self._known: dict[tuple[str, ...], bool] = {}
        """Classes, names and first values of parameters, which copies of them have too. False for memory that a
        parameter of the same name had before: it may hold the values of that one."""
        self._places: set[tuple[str, str, int]] = set()
        """Classes and names of parameters, with the addresses of their memory."""
        self._layers: dict[int, tuple[Ref, set[str]]] = {}
        """Identity of a layer to the names of the parameters that it has registered."""
        self._waiting: list[_Waiting] = []
        self._trained: list[_Trained] = []
        self._looks = 0
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
        again = self._is_again(module, name)  # such as a part of a parameter that was there before
        values = () if again or _version(parameter) else self._values(parameter)
        if values:
            place = *key, parameter.data_ptr()
            known = *key, *values
            self._first[parameter] = values
            self._known[known] = place not in self._places and self._known.get(known, True)
            self._places.add(place)

    def _is_again(self, module: Any, name: str) -> bool:
        """Return True if a layer has registered a parameter with a name before, and note that it does now."""
        known = self._layers.get(id(module))
        if known is None or known[0]() is not module:
            if len(self._layers) >= _MOST_READ:
                return True
            known = self._layers[id(module)] = Ref(module), set()
        again = name in known[1]
        known[1].add(name)
        return again

    def forget(self) -> None:
        """Forget the parameters: a session that is over leaves no reference to the program's tensors."""
        self._first.clear()
        self._layers.clear()
        self._waiting, self._trained = [], []

    def meet(self, module: Any, model: int, site: Site | None) -> None:
        """Note the parameters of a model with a version of zero that its own classes may have made of memory."""
        by_kind: dict[type, tuple[tuple[str, str], ...]] = {}
        for prefix, layer in module.named_modules():
            if type(layer) not in by_kind:
                by_kind[type(layer)] = self._owners(type(layer))
            owners = by_kind[type(layer)]
            for name, parameter in vars(layer).get("_parameters", {}).items() if owners else ():
                if parameter is None or self._is_memory(layer, name, parameter) is None:
                    continue
                if len(self._waiting) >= _MOST:
                    return
                fields = {"model": model, "layer": prefix, "name": name, "owners": owners, "site": site}
                self._waiting.append(_Waiting(Ref(parameter), Ref(layer), fields))

    def differentiated(self, *, in_step: bool) -> None:
        """Look at the parameters after a backward pass; in the step of an optimizer, an update follows."""
        if self._waiting and (in_step or not self._scene.ledger.panels) and self._looks < _MOST_LOOKS:
            self._looks += 1
            self._look()
            if in_step:
                self._tell()

    def stepping(self) -> None:
        """Emit the parameters with a gradient, before an optimizer updates them."""
        if self._waiting:
            self._look()
            self._tell()

    def moved(self) -> None:
        """Emit the parameters that an update by hand has moved against their gradients."""
        self._trained = [found for found in self._trained if _descends(found)]
        self._tell()

    def _look(self) -> None:
        """Find the parameters with a gradient, and forget those that were written to, or replaced."""
        waiting, self._waiting, self._trained = self._waiting, [], []
        for one in waiting:
            parameter, layer, name = one.parameter(), one.layer(), one.fields["name"]
            if parameter is None or layer is None or vars(layer)["_parameters"].get(name) is not parameter:
                continue
            gradient = parameter.grad
            compared = False if gradient is None else self._is_memory(layer, name, parameter)  # seldom: a read
            if compared is None:
                continue
            self._waiting.append(one)
            if gradient is not None:
                dense = type(gradient) is self._scene.torch.Tensor and gradient.layout is self._scene.torch.strided
                values = (_some(parameter), _some(gradient)) if dense and has_values(gradient) else ([], [])
                self._trained.append(_Trained(one, compared, values))

    def _tell(self) -> None:
        trained, self._trained = self._trained, []
        emitted = {id(found.one) for found in trained}
        self._waiting = [one for one in self._waiting if id(one) not in emitted]
        files = tuple(self._scene.sites.own_files()) if trained else ()
        for found in trained:
            self._scene.tell(ParameterUnwritten, **found.one.fields, files=files, compared=found.compared)

    def _is_memory(self, layer: Any, name: str, parameter: Any) -> bool | None:
        """Return None for a parameter that is not trained, or was written to, as far as its counter and values tell.

        Else return True if its first values are known and not all equal.
        """
        if is_lazy(parameter) or not parameter.requires_grad or not parameter.numel():
            return None
        if parameter.is_inference() or _version(parameter):
            return None
        key, values = (type(layer).__qualname__, name), self._values(parameter)
        known = self._known.get((*key, *values)) if self._first.get(parameter, values) == values else None
        if key in self._seen and known is None:  # copied, replaced, or written to by another name
            return None
        return known is True and len(set(values[2:])) > 1

    def _values(self, parameter: Any) -> tuple[str, ...]:
        """Return the shape, the type and some values as text; an empty tuple without values to read."""
        if type(parameter) is not self._parameter or not has_values(parameter):
            return ()
        if not parameter.numel() or is_freed(parameter):
            return ()
        return str(tuple(parameter.shape)), str(parameter.dtype), *map(repr, _some(parameter))

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


def _some(tensor: Any) -> list[Any]:
    """Return the values of some elements."""
    flat = tensor.detach().reshape(-1)
    values: list[Any] = flat[:: flat.numel() // _ELEMENTS | 1][:_ELEMENTS].tolist()  # odd: not of one column alone
    return values


def _descends(found: _Trained) -> bool:
    """Return True if a parameter has moved against its gradient: it is then not initialised after a first pass."""
    parameter = found.one.parameter()
    before, gradient = found.values
    if parameter is None or not gradient or not has_values(parameter) or is_freed(parameter):
        return False
    moves = [
        (now - old, slope) for now, old, slope in zip(_some(parameter), before, gradient, strict=True) if now != old
    ]
    rises = sum(slope < 0 for _, slope in moves)
    both = min(rises, len(moves) - rises) >= _LEAST_OF_EACH  # not only smaller values than those of the memory
    return both and all(move * slope < 0 for move, slope in moves)
