"""Attributes with a next value that a local variable gets, as in ``mean = 0.9 * self.mean + 0.1 * x.mean()``."""

from __future__ import annotations

import ast
import functools
import gc
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truestep import source
from truestep.events import Site, ValueUnread
from truestep.probes.context.local_variables import own_dict
from truestep.probes.context.values import has_values
from truestep.seams.refs import Ref
from truestep.syntax.attributes import lost_in

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_CANDIDATE = re.compile(r"^\s+(\w+)\s*=[^=].*\bself\.\1\b")
_LEAST_READS = 3
_MOST_OBJECTS = 16
_MOST_SEARCHES = 4
_LARGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class LostAttribute:
    """An attribute of the objects of a class, and the statement that loses its next value."""

    owner: str
    name: str
    path: str
    place: Site


@dataclass(slots=True)
class _Held:
    """An object with such an attribute, and the values of the attribute when it was met."""

    ref: Ref
    first: Any
    reads: int = 0


class LostAttributes:
    """Emits `ValueUnread` for attributes that keep their values.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._read: set[str] = set()
        """Files that were read for candidates."""
        self._open: list[LostAttribute] = []
        self._held: dict[LostAttribute, list[_Held]] = {}
        self._searches = 0
        self._step = -1

    def look(self) -> None:
        """Look at the attributes at a backward pass of a sampled step."""
        for path in self._scene.sites.own_files():
            if path not in self._read:
                self._read.add(path)
                self._open += lost_attributes(path)
        if not self._open or self._step == self._scene.sampling.step:
            return
        self._step = self._scene.sampling.step
        unmet = [one for one in self._open if not self._held.get(one)]
        if unmet and self._searches < _MOST_SEARCHES:
            self._searches += 1
            self._meet(unmet)
        for one in list(self._open):
            held = self._held.get(one, [])
            states = [self._is_kept(each, one.name) for each in held]
            if not all(states):
                self._open.remove(one)
            elif any(each.reads >= _LEAST_READS for each in held):
                self._open.remove(one)
                self._scene.emit(ValueUnread(name=one.name, kind="attribute", site=one.place))

    def _meet(self, lost: list[LostAttribute]) -> None:
        """Find the objects of some classes."""
        by_name = {one.owner: [other for other in lost if other.owner == one.owner] for one in lost}
        for thing in gc.get_objects():
            for one in by_name.get(type(thing).__name__, ()):
                held = self._held.setdefault(one, [])
                if _is_of(type(thing), one) and len(held) < _MOST_OBJECTS:
                    value = self._values(thing, one.name)
                    if value is not None:
                        held.append(_Held(Ref(thing), value))

    def _is_kept(self, held: _Held, name: str) -> bool:
        """Count a look at an object; return False if its attribute has another value now."""
        thing = held.ref()
        value = None if thing is None else self._values(thing, name)
        if value is None:
            return thing is None
        held.reads += 1
        return type(value) is type(held.first) and bool(
            value.equal(held.first) if type(value) is self._scene.torch.Tensor else value == held.first
        )

    def _values(self, thing: Any, name: str) -> Any:
        """Return a number, or a copy of a small tensor, that an object has as an attribute; None for others."""
        names = own_dict(thing) or {}
        buffers: Any = names.get("_buffers")
        value: Any = names.get(name, buffers.get(name) if type(buffers) is dict else None)
        if type(value) is float or (type(value) is int and value in (0, 1)):  # other integers are sizes and numbers
            return value
        if type(value) is not self._scene.torch.Tensor or value.requires_grad or not value.is_cpu:
            return None
        return value.detach().clone() if has_values(value) and value.numel() <= _LARGEST else None


def _is_of(kind: type, one: LostAttribute) -> bool:
    codes = (getattr(value, "__code__", None) for value in vars(kind).values())
    return any(code is not None and code.co_filename == one.path for code in codes)


@functools.lru_cache(maxsize=256)
def lost_attributes(path: str) -> tuple[LostAttribute, ...]:
    """Return the attributes that methods in a file read for their next value, which a local variable gets."""
    if not any(map(_CANDIDATE.match, source.read(path).lines)):
        return ()
    found: list[LostAttribute] = []
    tree = source.parsed(path) or ast.Module([], [])
    for owner in source.walk(tree):
        for method in owner.body if isinstance(owner, ast.ClassDef) else ():
            if isinstance(owner, ast.ClassDef) and isinstance(method, ast.FunctionDef):
                for name, node in lost_in(owner, method, tree):
                    place = Site(path, node.lineno, node.col_offset, node.end_lineno or -1, node.end_col_offset or -1)
                    found.append(LostAttribute(owner.name, name, path, place))
    return tuple(found)
