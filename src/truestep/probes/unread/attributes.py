"""Attributes with a next value that a local variable gets, as in ``mean = 0.9 * self.mean + 0.1 * x.mean()``."""

from __future__ import annotations

import ast
import functools
import gc
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truestep import source
from truestep.events import Site, ValueUnread
from truestep.probes.context.local_variables import own_dict
from truestep.probes.context.values import has_values
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_CANDIDATE = re.compile(r"^\s+(\w+)\s*=[^=].*\bself\.\1\b")
_LEAST_READS = 3
_MOST_OBJECTS = 16
_MOST_SEARCHES = 4
_LARGEST = 1 << 16
_DYNAMIC = frozenset({"locals", "vars", "exec", "eval"})


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


def lost_in(
    owner: ast.ClassDef, method: ast.FunctionDef, tree: ast.AST | None = None
) -> Iterator[tuple[str, ast.Assign]]:
    """Yield the attributes of a class that a method assigns to local variables which nothing reads.

    The next value is a sum of the attribute and of another variable with a factor, as in an average: a product is often
    a setting that fits the batch, and a plain sum an index. The class reads the attribute in another expression, and
    neither another method changes it nor code outside of the class assigns it.

    Args:
        owner: the class.
        method: a method of it.
        tree: the module.

    >>> code = '''
    ... class Norm:
    ...     def __init__(self):
    ...         self.mean, self.rate = 0.0, 0.1
    ...     def __call__(self, x):
    ...         mean = (1 - self.rate) * self.mean + self.rate * x.mean()
    ...         rate = 2 * self.rate
    ...         return x - self.mean * rate'''
    >>> owner = ast.parse(code).body[0]
    >>> [(name, node.lineno) for name, node in lost_in(owner, owner.body[1])]
    [('mean', 6)]
    """
    nodes = list(ast.walk(method))
    read = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    declared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    if not method.args.args or read & _DYNAMIC:
        return
    this = method.args.args[0].arg
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value) if name not in read | declared:
                others = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)} - {this}
                if others and _is_mixed(value, name) and not _changes(owner, name):
                    if _reads(owner, name) > _reads(value, name) and not _is_renewed(tree or owner, name, this):
                        yield name, node


def _is_mixed(value: ast.BinOp, name: str) -> bool:
    """Return True for a sum that begins or ends with an attribute, one part of which has a factor.

    >>> texts = "0.9 * self.m + x", "self.m + r * (x - self.m)", "self.m + x", "2 * (x + self.m)", "x - r * self.m"
    >>> [_is_mixed(ast.parse(text, mode="eval").body, "m") for text in texts]
    [True, True, False, False, False]
    """
    if not isinstance(value.op, ast.Add | ast.Sub):
        return False
    parts = [value.left, value.right] if isinstance(value.op, ast.Add) else [value.left]
    own = any(isinstance(one, ast.BinOp | ast.Attribute) and _reads(one, name) for one in parts)
    return own and any(isinstance(one, ast.Mult | ast.Div) for one in ast.walk(value))


def _is_renewed(tree: ast.AST, name: str, this: str) -> bool:
    """Return True if a module assigns a value to an attribute of this name of an object other than ``self``."""
    for node in source.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            match target:
                case ast.Attribute(attr=attribute, value=whose) if attribute == name:
                    if not (isinstance(whose, ast.Name) and whose.id in (this, "self")):
                        return True
    return False


def _reads(whole: ast.AST, name: str) -> int:
    """Return the number of places that read an attribute of this name."""
    attributes = [one for one in ast.walk(whole) if isinstance(one, ast.Attribute) and one.attr == name]
    return sum(isinstance(one.ctx, ast.Load) for one in attributes)


def _changes(owner: ast.ClassDef, name: str) -> bool:
    """Return True if a method other than ``__init__`` can change an attribute of this name."""
    for method in owner.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            continue
        for node in ast.walk(method):
            match node:
                case ast.Assign(targets=targets):
                    places: Iterable[ast.AST] = (one for target in targets for one in ast.walk(target))
                    if any(isinstance(one, ast.Attribute) and one.attr == name for one in places):
                        return True
                case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                    if any(isinstance(one, ast.Attribute) and one.attr == name for one in ast.walk(target)):
                        return True
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attribute), attr=called)):
                    if attribute == name and called.endswith("_"):
                        return True
                case ast.Call(func=ast.Name(id="setattr")):
                    return True
    return False
