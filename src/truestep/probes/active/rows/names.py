"""Names of arrays in the source of a program: where they are stored, and those that no statement reads."""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import re
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from truestep import source
from truestep.events import Site
from truestep.probes.active.rows.tables import Table
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, shape_of

if TYPE_CHECKING:
    from truestep.probes.active.rows.lookup import Found


def stored_at(frames: list[FrameType], name: str) -> Site | None:
    """Return the statement that first stores a variable, in the files of some frames."""
    for path in dict.fromkeys(frame.f_code.co_filename for frame in frames):
        place = _stores(path).get(name.partition("[")[0].partition(".")[0])
        if place is not None:
            return Site(path, *place)
    return None


def never_loaded(frames: list[FrameType], held: list[Held]) -> set[str]:
    """Return the names of arrays that their function or file stores, and never reads but to store them again."""
    found: set[str] = set()
    for frame in frames:
        function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
        stores, loads = _of_function(frame.f_code) if function else _of_file(frame.f_code.co_filename)
        loads = loads - _stored_again(frame.f_code.co_filename)
        owner = id(frame) if function else id(frame.f_globals)
        found |= {one.name for one in held if one.owner == owner and one.name in stores - loads and one.name[0] != "_"}
    return found


def unused_parts(scene: Scene, frames: list[FrameType], held: list[Held]) -> dict[str, Site | None]:
    """Return the arrays that no statement reads, nor another one with a word of their name, with their first statement.

    Of `x_val` and `y_val` it is enough that one is read. Attributes are looked up in all files of the program.
    """
    idle = never_loaded(frames, held)
    attributes = {one.name: _attribute(one.name) for one in held if "." in one.name}
    stores: dict[str, Site] = {}
    unread = set(attributes.values())
    for path in dict.fromkeys([frame.f_code.co_filename for frame in frames] + scene.sites.own_files()):
        if not unread:  # a program can have hundreds of files
            break
        stored, loaded = _attributes_of(path)
        stores = {name: Site(path, *place) for name, place in stored.items()} | stores
        unread -= loaded
    idle |= {name for name, attribute in attributes.items() if attribute in stores and attribute in unread}
    names = {one.name for one in held}
    for space in (space for frame in frames for space in (frame.f_globals, variables(frame))):
        names |= {name for name, value in space.items() if shape_of(scene.torch, value)}  # also other names of an array
    paths = [frame.f_code.co_filename for frame in frames if not frame.f_code.co_flags & inspect.CO_OPTIMIZED]
    feeding = {name for path in dict.fromkeys(paths) for name in _feeding(path, frozenset(idle))}
    read = {word for name in names - idle - feeding for word in _words(name)}
    found: dict[str, Site | None] = {}
    for name in sorted(idle):
        if read.isdisjoint(_words(name)):
            found[name] = stores.get(attributes.get(name, "")) or stored_at(frames, name)
    return found


class UnusedParts:
    """The arrays that evaluations do not read, and that no statement reads, nor another one with a word of their name.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._found: dict[str, Site | None] = {}
        self._read: set[str] = set()
        """Those with rows of an evaluation all the same, as under a name that is put together."""

    def evaluated(
        self,
        frames: list[FrameType],
        held: list[Held],
        found: list[Found],
        table_of: Callable[[Held, tuple[Any, ...]], Table | None],
        *,
        first: bool,
    ) -> None:
        """Handle an evaluation.

        Args:
            frames: the user's frames.
            held: the arrays that they hold.
            found: tables with its rows.
            table_of: returns an array as a table of rows of a form.
            first: True for the first evaluations of a line, in which parts are looked for.
        """
        if first:
            self._found |= unused_parts(self._scene, frames, held)
        for one in held if self._found else ():
            if one.name in self._found and one.name not in self._read:
                tables = ((table_of(one, like.form), like.keys) for like in found)
                if any(table is not None and bool(table.has(self._scene.torch, keys).any()) for table, keys in tables):
                    self._read.add(one.name)

    def unused(self) -> dict[str, Site | None]:
        """Return the arrays, with the statement that first stores each."""
        return {name: site for name, site in self._found.items() if name not in self._read}


def _attribute(name: str) -> str:
    """Return the attribute in the name of an array, such as "valid" for "self.valid[0]"."""
    return name.rpartition(".")[2].partition("[")[0]


def _words(name: str) -> set[str]:
    """Return the words of the last part of a name, except for single letters."""
    return {word for word in re.split(r"[\W_\d]+", _attribute(name).lower()) if len(word) > 1}


@functools.lru_cache(maxsize=256)
def _attributes_of(path: str) -> tuple[dict[str, tuple[int, int, int, int]], set[str]]:
    """Return the attributes that a file assigns, with the place of the first, and those that it reads, also as text."""
    stores: dict[str, tuple[int, int, int, int]] = {}
    loads = set[str]()
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                place = node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0
                stores.setdefault(node.attr, place)
            else:
                loads.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            loads.add(node.value)
    return stores, loads


@functools.lru_cache(maxsize=64)
def _of_function(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the local variables that a function stores, and those that it reads; inner functions may read cells."""
    stores, loads = set[str](), {*code.co_cellvars, *code.co_freevars, *code.co_varnames[: code.co_argcount]}
    for one in dis.get_instructions(code):
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        if one.opname.startswith("STORE_FAST_LOAD") or not one.opname.startswith("STORE_FAST"):
            loads.update(name for name in names if isinstance(name, str) and "_FAST" in one.opname)
        if one.opname.startswith("STORE_FAST"):
            stores.update(name for name in names if isinstance(name, str))
    return stores, loads


@functools.lru_cache(maxsize=64)
def _of_file(path: str) -> tuple[set[str], set[str]]:
    """Return the names that a file stores, and those that it reads anywhere, also as text, which can lead to them."""
    tree = source.parsed(path) or ast.Module([], [])
    loads = {node.id for node in source.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    texts = {node.value for node in source.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return set(_stores(path)), loads | texts


@functools.lru_cache(maxsize=64)
def _stored_again(path: str) -> set[str]:
    """Return the names that a file reads only to store them again, as in ``x = (x - mean) / std``."""
    tree = source.parsed(path) or ast.Module([], [])
    reads = [one for one in source.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    texts = {one.value for one in source.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    again: set[ast.AST] = set()
    for one in source.walk(tree):
        for target, value in _pairs(one) if isinstance(one, ast.Assign) and len(one.targets) == 1 else ():
            if isinstance(target, ast.Name) and not any(isinstance(part, ast.Lambda) for part in ast.walk(value)):
                again |= {part for part in ast.walk(value) if isinstance(part, ast.Name) and part.id == target.id}
    found = {one.id for one in reads if one in again}
    return found - {one.id for one in reads if one not in again} - texts


@functools.lru_cache(maxsize=64)
def _feeding(path: str, idle: frozenset[str]) -> set[str]:
    """Return the names that a file reads only to store idle ones: ``val_rows``, if ``x_val = x[val_rows]`` is idle."""
    tree = source.parsed(path) or ast.Module([], [])
    reads: dict[str, list[ast.AST]] = {}
    for one in source.walk(tree):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            reads.setdefault(one.id, []).append(one)
    fed = {
        part
        for one in source.walk(tree)
        for target, value in (_pairs(one) if isinstance(one, ast.Assign) and len(one.targets) == 1 else ())
        for part in (ast.walk(value) if isinstance(target, ast.Name) and target.id in idle else ())
    }
    return {name for name, places in reads.items() if all(place in fed for place in places)}


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """Return the targets of an assignment with their values, also with those that a comprehension makes them of."""
    target, value = node.targets[0], node.value
    if isinstance(value, ast.GeneratorExp | ast.ListComp) and len(value.generators) == 1:
        value = value.generators[0].iter
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, node.value)]


@functools.lru_cache(maxsize=64)
def _stores(path: str) -> dict[str, tuple[int, int, int, int]]:
    """Return the names that statements of a file assign, with the place of the first."""
    found: dict[str, tuple[int, int, int, int]] = {}
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        for target in targets:
            for inner in source.walk(target):
                if isinstance(inner, ast.Name) and inner.id not in found:
                    last, end = inner.end_lineno or inner.lineno, inner.end_col_offset or 0
                    found[inner.id] = inner.lineno, inner.col_offset, last, end
    return found


def stored_in_loop(frames: list[FrameType], name: str) -> bool:
    """Return True if a variable is stored by a loop, or within one, in the files of some frames."""
    root = name.partition("[")[0].partition(".")[0]
    return any(root in _of_loops(path) for path in {frame.f_code.co_filename for frame in frames})


@functools.lru_cache(maxsize=64)
def _of_loops(path: str) -> set[str]:
    """Return the names that the loops of a file store."""
    loops = (
        one for one in source.walk(source.parsed(path) or ast.Module([], [])) if isinstance(one, ast.For | ast.While)
    )
    names = (node for loop in loops for node in source.walk(loop) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}
