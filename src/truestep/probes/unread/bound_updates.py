"""Updates that are bound to the variable of a loop: ``for p, g in zip(params, grads): p = p - lr * g`` writes nothing.

Only the source is read here. A variable counts if its new value is made from its old one, and is kept nowhere: nothing
reads it, or only an update of another variable of the loop does.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.unread.statements import scope_of, statements_of

_LOOPS = (ast.For, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_THROUGH = ("list", "tuple", "reversed", "tqdm")
_SHOWN = ("print", "info", "debug", "isnan", "isfinite")
BOUNDS = ("clamp", "clip", "clamp_min", "clamp_max")
_OPERATIONS = frozenset(("add", "sub", "subtract", "mul", "multiply", "div", "lerp", "addcmul", "addcdiv", "where"))


class Source(NamedTuple):
    """The expression that a variable of a loop goes over."""

    held: ast.expr
    part: int | None = None
    """Its place in each element, if this is unpacked."""
    keyed: bool = False
    """True for the values of a dict."""


class BoundUpdate(NamedTuple):
    """A variable of a loop with a new value that nothing keeps.

    Attributes:
        name: the variable.
        place: the new value.
        value: the same, as syntax.
        own: source of the variable in the header of the loop.
        written: sources of the other variables that an update in the loop writes, with this value.
        read: False if nothing reads the new value.
        gradient: whether the new value is made from a gradient, by the names.
    """

    name: str
    place: Site
    value: ast.expr
    own: Source
    written: tuple[Source, ...]
    read: bool
    gradient: bool


class Reached(NamedTuple):
    """The statements that every pass of a loop, or every call of a function, runs."""

    updates: tuple[BoundUpdate, ...]
    calls: tuple[ast.Call, ...]
    """Calls that may lead to other functions of the program."""


@functools.lru_cache(maxsize=256)
def reached(code: CodeType, line: int) -> Reached:
    """Return the code that runs between two visits of a line of a function; a line of 0 is for the whole function."""
    scope = scope_of(code)
    if scope is None:
        return Reached((), ())
    around = [node for node in _in_scope(scope) if isinstance(node, _LOOPS) and _is_in(line, node)] if line else []
    if line and not around and isinstance(scope, ast.Module):
        return Reached((), ())
    body = max(around, key=lambda node: node.lineno) if around else scope
    always = [node for node, _, guarded in statements_of(body) if not guarded]
    updates = [one for node in always if isinstance(node, ast.For) for one in _updates(node, scope, code)]
    calls = [call for node in always for call in _calls(node)]
    return Reached(tuple(updates), tuple(calls))


def _in_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope without those of functions and classes in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _SCOPES):
            yield child
            yield from _in_scope(child)


def _is_in(line: int, loop: ast.For | ast.While) -> bool:
    return loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or 0)


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a simple statement."""
    if isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return):
        for node in _in_scope(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                yield node


# --- loops ---------------------------------------------------------------------------------------------------------


def sources(target: ast.expr, over: ast.expr) -> Iterator[tuple[str, Source]]:
    """Yield the variables of a loop, with their sources.

    >>> loop = ast.parse("for i, (p, v) in enumerate(zip(params, state.values())): pass").body[0]
    >>> [(name, ast.unparse(one.held)) for name, one in sources(loop.target, loop.iter)]
    [('p', 'params'), ('v', 'state')]
    """
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    match over:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]) if len(parts) == 2:
            yield from sources(parts[1], inner)
        case ast.Call(func=ast.Name(id="zip"), args=inners) if len(parts) == len(inners):
            for part, inner in zip(parts, inners, strict=True):
                yield from sources(part, inner)
        case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _THROUGH:
            yield from sources(target, inner)
        case ast.Call(func=ast.Attribute(value=held, attr="items"), args=[]) if len(parts) == 2:
            if isinstance(parts[1], ast.Name):
                yield parts[1].id, Source(held, keyed=True)
        case ast.Call(func=ast.Attribute(value=held, attr="values"), args=[]) if isinstance(target, ast.Name):
            yield target.id, Source(held, keyed=True)
        case _ if isinstance(target, ast.Name):
            yield target.id, Source(over)
        case _:
            for at, part in enumerate(parts):
                if isinstance(part, ast.Name):
                    yield part.id, Source(over, part=at)


def _updates(loop: ast.For, scope: ast.AST, code: CodeType) -> Iterator[BoundUpdate]:
    own = dict(sources(loop.target, loop.iter))
    if loop.orelse or any(isinstance(node, _SCOPES) for node in source.walk(loop)):
        return
    simple = [node for node, _, _ in statements_of(loop)]
    for name in own:
        bound = [one for one in simple if _binds(one, name)]
        if not bound or _is_read_outside({name}, loop, scope) or _is_stored_otherwise(name, bound, loop):
            continue
        first = bound[0]
        uses, passing = _uses(name, first, simple, own)
        if uses is None or _is_read_outside(passing, loop, scope):
            continue
        if isinstance(first, ast.Assign) and _is_update(first.value, name):
            written = tuple(own[one] for one in sorted(uses) if one != name)
            gradient = not _gradients(simple, own).isdisjoint(_loads(first.value)) or _has_gradient(first.value)
            yield BoundUpdate(name, _place(code, first.value), first.value, own[name], written, bool(written), gradient)


def _gradients(simple: list[ast.stmt], own: dict[str, Source]) -> set[str]:
    """Return the variables of a loop that stand for gradients."""
    found = {name for name, one in own.items() if name == "g" or "grad" in f"{name} {ast.unparse(one.held)}".lower()}
    for node in simple:
        if isinstance(node, ast.Assign) and (_has_gradient(node.value) or not found.isdisjoint(_loads(node.value))):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)} - own.keys()
    return found


def _has_gradient(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in source.walk(node))


def _binds(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == [name]


def _is_stored_otherwise(name: str, bound: list[ast.stmt], loop: ast.For) -> bool:
    """Return True if the loop stores a variable in another way than by these assignments."""
    stores = [one for one in source.walk(loop) if isinstance(one, ast.Name) and one.id == name]
    stores = [one for one in stores if not isinstance(one.ctx, ast.Load)]
    return len(stores) != len(bound) + 1  # the target of the loop itself


def _is_read_outside(names: set[str], loop: ast.For, scope: ast.AST) -> bool:
    """Return True if code outside of a loop reads one of its variables, and no other loop sets it there."""
    for node in source.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal) and not names.isdisjoint(node.names):
            return True
    first, last = loop.lineno, loop.end_lineno or 0
    return any(one.id in names and not first <= one.lineno <= last for one in _free(scope, frozenset()))


def _free(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.Name]:
    """Yield the names that are read, without those that a loop or a comprehension around them sets."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in bound:
            yield node
        return
    if isinstance(node, ast.For):
        bound |= _stored(node.target)
    for generator in getattr(node, "generators", ()):
        bound |= _stored(generator.target)
    for child in ast.iter_child_nodes(node):
        yield from _free(child, bound)


def _stored(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in source.walk(node) if isinstance(one, ast.Name))


def _loads(node: ast.AST) -> set[str]:
    return {one.id for one in source.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _uses(
    name: str, first: ast.stmt, simple: list[ast.stmt], own: dict[str, Source]
) -> tuple[set[str] | None, set[str]]:
    """Return the variables of a loop that are updated with a new value, and others that are made from it.

    The first are None if the value is kept in another way.
    """
    tainted, updated = {name}, set[str]()
    for node in simple:
        read = _loads(node.test) if isinstance(node, ast.If | ast.While) else _loads(node)
        if node.lineno <= first.lineno or read.isdisjoint(tainted) or isinstance(node, ast.If | ast.While | ast.With):
            continue
        match node:
            case ast.Assign(targets=[ast.Name(id=stored)], value=ast.BinOp() | ast.Call() | ast.UnaryOp()):
                if stored not in own:
                    tainted.add(stored)
                elif stored != name:
                    updated.add(stored)
            case ast.AugAssign(target=target) if (root := _root(target)) in own and root != name:
                updated.add(root)
            case ast.Assign(targets=[ast.Attribute(attr="data") as target], value=ast.BinOp() | ast.Call()) if (
                root := _root(target)
            ) in own and root != name:
                updated.add(root)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr) as called)) if (
                attr.endswith("_") and (root := _root(called)) in own and root != name
            ):
                updated.add(root)
            case ast.Expr(value=ast.Call(func=ast.Name(id=attr) | ast.Attribute(attr=attr))) if attr in _SHOWN:
                pass
            case _:
                return None, set()
    return updated, tainted - {name}


def _root(node: ast.expr) -> str:
    """Return the variable of ``p``, ``p.data`` or ``p.data.add_``; "" for another expression."""
    while isinstance(node, ast.Attribute) and node.attr not in ("grad",):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_update(value: ast.expr, name: str) -> bool:
    """Return True if a value is computed from the old one: a formula, or an operation on it."""
    if name not in _loads(value) or any(isinstance(one, ast.NamedExpr | ast.IfExp) for one in source.walk(value)):
        return False
    if isinstance(value, ast.BinOp):
        return True
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    return value.func.attr in _OPERATIONS or value.func.attr in BOUNDS


def _place(code: CodeType, node: ast.expr) -> Site:
    end, column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Site(code.co_filename, node.lineno, node.col_offset, end, column, code.co_name)
