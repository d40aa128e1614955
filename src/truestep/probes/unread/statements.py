"""Results that the source of a function never reads: variables that are only stored, and expressions as statements."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.unread.rebound import lost_states, reads_gradients, rebound

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SEE_ALL = {"locals", "vars", "eval", "exec", "globals", "dir", "get_ipython"}
_THROWN_AWAY = ("dummy", "unused", "ignored", "junk", "discard")


class Unread(NamedTuple):
    """A statement with a result that nothing reads."""

    names: tuple[str, ...]
    """The variables that it stores; () for an expression alone."""
    value: ast.expr
    place: Site
    """The value."""
    lines: tuple[int, int]
    """First and last line of the statement."""
    written: bool
    """Whether a variable is also written in place."""
    once: bool
    """Whether the statement is in no loop of its function."""
    guarded: bool
    """Whether it is under a condition."""
    rebound: bool = False
    """Whether the variable is that of the loop around the statement."""
    lost: bool = False
    """Whether it is an update by hand that surely goes nowhere: by taken gradients, or of its state."""


@functools.lru_cache(maxsize=256)
def unread(code: CodeType) -> tuple[Unread, ...]:
    """Return the statements of a function, or of the main file, with results that nothing in it reads."""
    tree, scope = source.parsed(code.co_filename), scope_of(code)
    if tree is None or scope is None:
        return ()
    statements = list(statements_of(scope))
    aside = set[int]()
    written = {name for node, _, _ in statements for name in _writes(node, aside)}
    whole = scope if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) else tree
    reads = {
        node.id
        for node in source.walk(whole)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store) and id(node) not in aside
    }
    for node in source.walk(whole):
        if isinstance(node, ast.Global | ast.Nonlocal):
            reads.update(node.names)
        elif scope is tree and isinstance(node, ast.Constant) and isinstance(node.value, str):
            reads.add(node.value)
    if not _SEE_ALL.isdisjoint(reads):
        return ()
    found: dict[object, Unread] = {}
    for node, looped, guarded in statements:
        for names, value in _results(node, guarded):
            if reads.isdisjoint(names) and not any(map(_is_thrown_away, names)):
                lines = node.lineno, node.end_lineno or node.lineno
                place, changed = _site(code, value), not written.isdisjoint(names)
                found[names or node] = Unread(names, value, place, lines, changed, not looped, guarded)
    for node, name in rebound(scope):
        lines = node.lineno, node.end_lineno or node.lineno
        lost = reads_gradients(scope, node)
        found[node] = Unread((name,), node.value, _site(code, node.value), lines, False, False, False, True, lost)
    for node, name in lost_states(tree, scope):
        lines = node.lineno, node.end_lineno or node.lineno
        found[node] = Unread((name,), node.value, _site(code, node.value), lines, False, False, False, True, True)
    return tuple(found.values())


def scope_of(code: CodeType) -> ast.AST | None:
    """Return the function of a code object, or the file; None if it is neither, or its source is unknown."""
    tree = source.parsed(code.co_filename)
    if tree is None:
        return None
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return tree if code.co_name == "<module>" else None
    for node in source.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if code.co_firstlineno in (node.lineno, *(one.lineno for one in node.decorator_list)):
                return node
    return None


def statements_of(
    node: ast.AST, *, looped: bool = False, guarded: bool = False
) -> Iterator[tuple[ast.stmt, bool, bool]]:
    """Yield the statements of a scope, and whether they are in a loop, and under a condition."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not isinstance(child, _SCOPES):
            yield child, looped, guarded
            inner = isinstance(child, ast.If | ast.Try | ast.Match)
            yield from statements_of(child, looped=looped or isinstance(child, _LOOPS), guarded=guarded or inner)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from statements_of(child, looped=looped, guarded=True)


def _writes(node: ast.stmt, aside: set[int]) -> Iterator[str]:
    """Yield the variables that a statement writes in place; add the names in it that it does not read."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            aside.update(id(one) for one in source.walk(value) if isinstance(one, ast.Name) and one.id == name)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name) as held, attr=attr))):
            if attr.endswith("_"):
                aside.add(id(held))
                yield name
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    for target in targets:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            aside.add(id(target.value))
            yield target.value.id


def _results(node: ast.stmt, guarded: bool) -> Iterator[tuple[tuple[str, ...], ast.expr]]:
    """Yield the variables that a statement stores together, with their value; () for an expression alone."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield (name,), value
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Tuple(elts=values)) if len(parts) == len(values):
            for part, value in zip(parts, values, strict=True):
                if isinstance(part, ast.Name):
                    yield (part.id,), value
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call() as value):
            if all(isinstance(part, ast.Name) for part in parts):
                yield tuple(part.id for part in parts if isinstance(part, ast.Name)), value
        case ast.Expr(value=ast.Call() | ast.BinOp() as value) if not guarded:
            yield (), value


def _is_thrown_away(name: str) -> bool:
    return name.startswith(("_", *_THROWN_AWAY))


def _site(code: CodeType, node: ast.expr) -> Site:
    end, column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Site(code.co_filename, node.lineno, node.col_offset, end, column, code.co_name)
