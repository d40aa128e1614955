"""Read the source of a loop over a loader: does a statement in its body always leave it in the first round?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from truestep import source
from truestep.events import Site


class Leaving(NamedTuple):
    """A loop that is always left in its first round: statement, place, lines, and True if it adds something up."""

    left: str = ""
    left_at: tuple[int, ...] = ()
    body: tuple[int, ...] = ()
    sums: bool = False
    overwrites: bool = False


def leaving(site: Site | None) -> Leaving:
    """Return the statement that always leaves the loop with its iterable at a site, or ``next(iter(...))`` there."""
    tree = None if site is None or site.column < 0 else source.parsed(site.path)
    if site is None or tree is None:
        return Leaving("unread")
    for node in source.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor) and (_holds(node.iter, site) or _is_at(node, site)):
            left = _always(node.body)
            if left is None:
                return Leaving()
            how = "return" if isinstance(left, ast.Return) else "break"
            sums = any(isinstance(inner, ast.AugAssign) for inner in source.walk(node))
            return Leaving(how, _place(left), (node.lineno, node.end_lineno or node.lineno), sums)
        if _is_next(node, site):
            return Leaving("next", _place(node), overwrites=_overwrites(tree, node))
    return Leaving()


def _overwrites(tree: ast.AST, call: ast.AST) -> bool:
    """Return True if the result of a call replaces variables of the loop around it, which nothing has read before."""
    for loop in source.walk(tree):
        if not isinstance(loop, ast.For | ast.AsyncFor):
            continue
        for number, statement in enumerate(loop.body):
            if isinstance(statement, ast.Assign) and statement.value is call:
                named = _names(statement.targets, ast.Store)
                before = _names(loop.body[:number], ast.Load)
                return bool(named) and named <= _names([loop.target], ast.Store) and named.isdisjoint(before)
    return False


def _names(nodes: Sequence[ast.AST], context: type[ast.expr_context]) -> set[str]:
    every = (name for node in nodes for name in source.walk(node))
    return {name.id for name in every if isinstance(name, ast.Name) and isinstance(name.ctx, context)}


def _place(node: ast.AST) -> tuple[int, ...]:
    """Return first line and column, last line and column, as a `Site` counts them."""
    places: list[int] = [getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")]
    return tuple(places)


def _holds(node: ast.expr, site: Site) -> bool:
    """Return True if an expression is at a site, or around it."""
    line, column, end_line, end_column = _place(node)
    return (line, column) <= (site.line, site.column) and (site.end_line, site.end_column) <= (end_line, end_column)


def _is_at(node: ast.stmt, site: Site) -> bool:
    """Return True if a site is a whole loop, as in Python up to 3.12."""
    return _place(node) == (site.line, site.column, site.end_line, site.end_column)


def _is_next(node: ast.AST, site: Site) -> bool:
    """Return True if this is ``next(iter(...))``, and the site is its inner call."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next" and node.args):
        return False
    inner = node.args[0]
    return isinstance(inner, ast.Call) and ast.unparse(inner.func) == "iter" and _holds(inner, site)


def _always(body: Iterable[ast.stmt]) -> ast.stmt | None:
    """Return the statement that leaves a loop whenever its body is run from the top."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Break):
            return statement
        if isinstance(statement, ast.With | ast.AsyncWith) or (
            isinstance(statement, ast.Try) and not statement.handlers
        ):
            inner = _always(statement.body)
            if inner is not None:
                return inner
    return None
