"""The line that makes a variable: the statement that stores it, or the end of the program's function that it calls.

Objects are followed by names and attributes only; no code of the program runs.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.names import call_at
from truestep.probes.context.scene import Scene
from truestep.seams.code.functions import code_of

_DEEP = 3
_PLACES = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def place_of(code: CodeType, node: ast.AST) -> Site:
    """Return the place of a node in the file of a function."""
    return Site(code.co_filename, *(getattr(node, place) for place in _PLACES))


def root_of(name: str) -> str:
    """Return the variable that a name such as "batch['x']" or "data.x" begins with."""
    return name.partition("[")[0].partition(".")[0]


def stored_by(frame: FrameType, name: str) -> ast.Assign | ast.For | None:
    """Return the statement that stored a variable of a frame: the latest one above its current line, else the last."""
    found = _statements(frame.f_code).get(root_of(name), [])
    above = [one for one in found if one.lineno <= frame.f_lineno]
    return above[-1] if above else found[-1] if found else None


def mentions(statement: ast.Assign | ast.For | None, name: str) -> bool:
    """Return True if the value that a statement stores is made from a variable."""
    value = statement.iter if isinstance(statement, ast.For) else statement.value if statement is not None else None
    return value is not None and any(
        isinstance(node, ast.Name) and node.id == root_of(name) for node in source.walk(value)
    )


def made_at(scene: Scene, frame: FrameType, name: str) -> Site | None:
    """Return the line that makes a variable of a frame; None if no statement stores it."""
    names, first, queue = frame.f_globals | variables(frame), None, [name]
    for _ in range(_DEEP):
        statement = stored_by(frame, queue.pop(0)) if queue else None
        if statement is None:
            break
        value = statement.iter if isinstance(statement, ast.For) else statement.value
        for node in source.walk(value):
            maker = _maker(node, names)
            end = None if maker is None or scene.sites.is_installed(maker.co_filename) else _end(maker)
            if end is not None:
                return end
        first = first or place_of(frame.f_code, value)
        queue += [node.id for node in source.walk(value) if isinstance(node, ast.Name) and node.id != root_of(name)]
    return first


def _maker(node: ast.AST, names: dict[str, Any]) -> CodeType | None:
    """Return the code that makes the value of an expression: of a function that it calls, or of a data set."""
    if isinstance(node, ast.Call):
        called = resolved(node.func, names)
        called = called.__func__ if type(called) is MethodType else called
        if issubclass(type(called), type):  # a data set that is built in the expression
            called = inspect.getattr_static(called, "__getitem__", None)
        return code_of(called) if isinstance(called, FunctionType) else None
    return _of_loader(resolved(node, names)) if isinstance(node, ast.Name | ast.Attribute) else None


def _of_loader(loader: Any) -> CodeType | None:
    held = _attributes(loader)
    data = held.get("dataset", held.get("_dataset"))
    for _ in range(_DEEP):
        data = _attributes(data).get("dataset", data)
    for one in (inspect.getattr_static(type(data), "__getitem__", None), held.get("collate_fn")):
        if isinstance(one, FunctionType) and not one.__module__.startswith("torch."):
            return code_of(one)
    return None


def resolved(node: ast.AST, names: dict[str, Any]) -> Any:
    """Return the object that a name with attributes stands for; None if it is another expression."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, names)
        held = _attributes(owner)
        return held[node.attr] if node.attr in held else inspect.getattr_static(type(owner), node.attr, None)
    return None


def _attributes(value: Any) -> dict[str, Any]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


@functools.lru_cache(maxsize=64)
def _body(code: CodeType) -> ast.AST | None:
    """Return the syntax of a function, or of a file."""
    tree = source.parsed(code.co_filename)
    if tree is None or not code.co_flags & inspect.CO_OPTIMIZED:
        return tree
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    first = code.co_firstlineno
    for node in source.walk(tree):
        if isinstance(node, kinds) and first in (node.lineno, *(one.lineno for one in node.decorator_list)):
            return node
    return None


def _own(tree: ast.AST | None) -> Iterator[ast.AST]:
    """Yield the nodes of a function or file, without those of the functions inside."""
    queue = [] if tree is None else list(ast.iter_child_nodes(tree))
    while queue:
        node = queue.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            queue += ast.iter_child_nodes(node)


@functools.lru_cache(maxsize=64)
def _statements(code: CodeType) -> dict[str, list[ast.Assign | ast.For]]:
    """Return the statements that store each variable, from top to bottom."""
    found: dict[str, list[ast.Assign | ast.For]] = {}
    for node in _own(_body(code)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        for inner in (inner for target in targets for inner in source.walk(target)):
            if (
                isinstance(inner, ast.Name)
                and isinstance(inner.ctx, ast.Store)
                and isinstance(node, ast.Assign | ast.For)
            ):
                found.setdefault(inner.id, []).append(node)
    return {name: sorted(nodes, key=lambda node: node.lineno) for name, nodes in found.items()}


@functools.lru_cache(maxsize=64)
def scope_of(code: CodeType) -> list[ast.AST]:
    """Return the nodes of a function or file, without those of the functions inside."""
    return list(_own(_body(code)))


def stores_of(code: CodeType, name: str) -> list[ast.Assign | ast.For]:
    """Return the statements of a function or file that store a variable, from top to bottom."""
    return _statements(code).get(name, [])


def is_of_loop(frame: FrameType, name: str) -> bool:
    """Return True if the innermost loop around the current line of a frame stores a variable, or if there is none."""
    stored = _stored_in_loop(frame.f_code, frame.f_lineno)
    return stored is None or root_of(name) in stored


@functools.lru_cache(maxsize=64)
def _stored_in_loop(code: CodeType, line: int) -> frozenset[str] | None:
    around = [
        node
        for node in scope_of(code)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return None
    inner = max(around, key=lambda node: node.lineno)
    return frozenset(one.id for one in ast.walk(inner) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))


def last_written(frame: FrameType, name: str) -> Site | None:
    """Return the last statement above the current line of a frame that stores a variable or writes into it.

    That of an attribute can be in another function of its file.
    """
    found = _written(frame.f_code, name, frame.f_lineno)
    if found is None and "." in name:
        tree, attribute = source.parsed(frame.f_code.co_filename), name.rpartition(".")[2]
        for node in source.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Assign) and attribute in _attributes_in(node):
                found = place_of(frame.f_code, node)
    return found or (None if root_of(name) == name else _written(frame.f_code, root_of(name), frame.f_lineno))


def _attributes_in(statement: ast.Assign) -> set[str]:
    inner = [one for target in statement.targets for one in (target, *getattr(target, "elts", ()))]
    owners = [one.value if isinstance(one, ast.Subscript) else one for one in inner]
    return {one.attr for one in owners if isinstance(one, ast.Attribute)}


def _written(code: CodeType, name: str, line: int) -> Site | None:
    """Return the last statement of a function up to a line that assigns an expression, or some of its elements."""
    found: ast.Assign | None = None
    for node in scope_of(code):
        if not isinstance(node, ast.Assign) or node.lineno > line or (found is not None and found.lineno > node.lineno):
            continue
        inner = [one for target in node.targets for one in (target, *getattr(target, "elts", ()))]
        owners = [one.value for one in inner if isinstance(one, ast.Subscript)]
        if any(ast.unparse(one) == name for one in (*inner, *owners)):
            found = node
    return None if found is None else place_of(code, found)


def items_of(frame: FrameType, name: str, count: int) -> Iterator[tuple[str, Site | None]]:
    """Yield the names of the items of a tuple, and the statement that makes each.

    They are those in the statement that stores the tuple, or in the only return of the function that it calls.
    """
    statement, code, line = stored_by(frame, name), frame.f_code, frame.f_lineno
    value: ast.expr | None = statement.value if isinstance(statement, ast.Assign) else None
    if statement is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return
    if isinstance(value, ast.Call):
        maker = _maker(value, frame.f_globals | variables(frame))
        ends = [one for one in scope_of(maker) if isinstance(one, ast.Return)] if maker is not None else []
        if maker is None or len(ends) != 1:
            return
        code, line, value = maker, ends[0].lineno, ends[0].value
    items = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    if len(items) == count and all(isinstance(one, ast.Name | ast.Attribute) for one in items):
        for one in items:
            yield ast.unparse(one), _written(code, ast.unparse(one), line)


@functools.lru_cache(maxsize=64)
def _end(code: CodeType) -> Site | None:
    """Return the last line at which a function returns or yields a value."""
    ends = [node for node in _own(_body(code)) if isinstance(node, ast.Return | ast.Yield) and node.value is not None]
    last = max(ends, key=lambda node: node.lineno, default=None)
    return None if last is None else place_of(code, last)


def target_made_at(scene: Scene, frame: FrameType | None, site: Site | None) -> Site | None:
    """Return the line that makes the targets of a loss: the second argument of the call at a site, in its frame.

    An argument of a function is followed to the frames further out, by identity.
    """
    frames = scene.sites.users(frame)
    tree = source.parsed(site.path) if site is not None else None
    if site is None or tree is None or not frames:
        return None
    for node in source.walk(tree):
        if not isinstance(node, ast.Call) or (node.lineno, node.col_offset) != (site.line, site.column):
            continue
        second = node.args[1] if len(node.args) > 1 else next(iter(one.value for one in node.keywords), None)
        names = [one.id for one in source.walk(second) if isinstance(one, ast.Name)] if second is not None else []
        for name in names:
            found = _followed(scene, frames, name)
            if found is not None:
                return found
    return None


def _followed(scene: Scene, frames: list[FrameType], name: str) -> Site | None:
    value, tensor = (frames[0].f_globals | variables(frames[0])).get(name), scene.torch.Tensor
    if not issubclass(type(value), tensor) and type(value).__module__ != "numpy":
        return None
    for holder in frames:
        for other, held in variables(holder).items():
            if held is value and stored_by(holder, other) is not None:
                return made_at(scene, holder, other)
    return None


def loss_made_at(scene: Scene, frame: FrameType | None, site: Site | None) -> Site | None:
    """Return the line that makes the loss of a backward pass at a site: the one that stores its variable."""
    call = call_at(site)
    if call is None or frame is None or not isinstance(call.func, ast.Attribute):
        return site
    names = frame.f_globals | variables(frame)
    for node in source.walk(call):
        if isinstance(node, ast.Name) and type(names.get(node.id)) is scene.torch.Tensor:
            return made_at(scene, frame, node.id) or site
    return site
