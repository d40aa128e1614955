"""Collections of parameters that are plain tensors: lists and dicts with some that no optimizer holds."""

from __future__ import annotations

import ast
import functools
from collections import OrderedDict
from types import CodeType, FrameType
from typing import Any

from truestep import source
from truestep.events import LeavesGrouped
from truestep.probes.backward.gradient_reads import names_gradients
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.origins import scope_of

_BY_HAND = frozenset({"grad", "func", "retain_grad", "register_hook"})
_MOST_LOOKS = 16
_MOST_FRAMES = 6
_MOST_ITEMS = 64
_MOST_OF_LAYER = 4
"""Number of tensors of an item that is a layer: weight and bias, or those of a normalisation too."""
_PLAIN = (str, int, float, bool, type(None))
Members = dict[str, Any]


class LeafGroups:
    """Emits `LeavesGrouped` for variables that hold tensors of an optimizer and others that the same pass reaches."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._looks = 0
        self._told: set[tuple[int, ...]] = set()

    def look(self, leaves: dict[int, int], frame: FrameType | None) -> None:
        """Look into the variables of the frames of the program, if a pass reaches leaves that no optimizer holds.

        Args:
            leaves: number of each leaf that the pass reaches, by its id.
            frame: the innermost frame of the program.
        """
        held = {one.number for panel in self._scene.ledger.panels.values() for one in panel.everything}
        loose = set(leaves.values()) - held
        if not loose or not held.intersection(leaves.values()) or self._looks >= _MOST_LOOKS:
            return
        self._looks += 1
        codes = [one.f_code for one in self._scene.sites.users(frame)]
        paths = {code.co_filename for code in codes}
        if names_gradients(paths) or any(map(_loads, paths)) or any(map(_uses_gradients, codes)):
            return
        functions = self._scene.functions
        collections = [(name, members, f"{name}[{{}}]") for name, members in self._collections(frame)]
        collections += [(name, members, "{}") for name, members in (functions.weights() if functions else {}).items()]
        for name, members, form in collections:
            numbers = [leaves.get(id(tensor), -1) for tensor in members.values()]
            group = tuple(number for number in numbers if number >= 0)
            if group not in self._told and not loose.isdisjoint(group) and not held.isdisjoint(group):
                self._told.add(group)
                places = [place for place, number in zip(members, numbers, strict=True) if number >= 0]
                names = tuple(form.format(place) for place in places)
                self._scene.tell(LeavesGrouped, parameters=group, names=names, name=name)

    def _collections(self, frame: FrameType | None) -> list[tuple[str, Members]]:
        """Return the collections of trainable leaves in the variables of the program, and in attributes of these."""
        found: list[tuple[str, Members]] = []
        scopes: list[dict[str, object]] = []
        for _ in range(_MOST_FRAMES):
            while frame is not None and self._scene.sites.kind(frame.f_code) != 0:
                frame = frame.f_back
            if frame is None:
                break
            scopes += [variables(frame), frame.f_globals]
            frame = frame.f_back
        seen: set[int] = set()
        for name, value in [item for scope in scopes for item in list(scope.items())]:
            if id(value) in seen or name.startswith("_"):
                continue
            seen.add(id(value))
            attributes = {} if _items(value) is not None else own_dict(value) or {}
            several = [(name, value), *((f"{name}.{key}", one) for key, one in list(attributes.items())[:_MOST_ITEMS])]
            for place, one in several:
                members = self._members(one)
                if len(members) > 1:
                    found.append((place, members))
        return found

    def _members(self, value: object, *, layers: bool = True) -> Members:
        """Return the tensors of a collection that has no others than trainable leaves, by their place in it."""
        items = _items(value)
        members: Members = {}
        for key, one in items or ():
            kind = type(one)
            if kind is self._scene.torch.Tensor or kind is self._scene.torch.nn.Parameter:
                if not (one.is_leaf and one.requires_grad):
                    return {}
                members[key] = one
            elif layers and type(value) in (list, tuple) and _items(one) is not None:
                inner = self._members(one, layers=False)
                if not 0 < len(inner) <= _MOST_OF_LAYER:
                    return {}
                members |= {f"{key}][{place}": tensor for place, tensor in inner.items()}
            elif kind not in _PLAIN:
                return {}
        return members


@functools.lru_cache(maxsize=256)
def _loads(path: str) -> bool:
    """Return True if a file loads values: tensors beside trained adapters keep the ``requires_grad`` that was saved."""
    return any("load(" in line or "load_file(" in line for line in source.read(path).lines)


def _uses_gradients(code: CodeType) -> bool:
    """Return True if a function reads gradients, or writes to values by hand: it may train, or probe, a leaf."""
    for node in scope_of(code):
        match node:
            case ast.Attribute(attr=attr) if attr in _BY_HAND:
                return True
            case ast.Attribute(attr="data", ctx=ast.Store()) | ast.AugAssign(target=ast.Attribute(attr="data")):
                return True
            case ast.Subscript(value=ast.Attribute(attr="data"), ctx=ast.Store()):
                return True
            case ast.Attribute(value=ast.Attribute(attr="data"), attr=method) if method.endswith("_"):
                return True
    return False


def _items(value: Any) -> list[tuple[str, Any]] | None:
    """Return the items of a short list, tuple or dict, with their keys as text; None for anything else."""
    kind = type(value)
    if kind is dict or kind is OrderedDict:
        pairs = [(repr(key), one) for key, one in list(dict.items(value)) if type(key) in _PLAIN]
    elif kind is list or kind is tuple:
        pairs = [(str(at), one) for at, one in enumerate(value)]
    else:
        fields = kind.__dict__.get("_fields") if issubclass(kind, tuple) else None
        pairs = list(zip(fields, tuple.__iter__(value), strict=False)) if type(fields) is tuple else []
    return pairs if 0 < len(pairs) <= _MOST_ITEMS else None
