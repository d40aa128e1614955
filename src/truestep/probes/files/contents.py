"""States in a loaded file, and the resumption of a training by the code around the load."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from truestep import source
from truestep.events import Site

_MOST_KEYS = 64
_POSITION = re.compile(r"epoch|step|iter", re.IGNORECASE)


def states(loaded: Any) -> tuple[int, int]:
    """Return the numbers of states of optimizers with moments, and of schedules, in the dict that a file holds."""
    optimizers = schedules = 0
    for value in _values(loaded):
        if isinstance(value, Mapping) and "param_groups" in value:
            optimizers += bool(value.get("state"))
        elif isinstance(value, Mapping) and "last_epoch" in value:
            schedules += 1
    return optimizers, schedules


def _values(loaded: Any) -> Iterator[Any]:
    """Yield the values of a dict, and the items of lists among them."""
    for value in list(loaded.values())[:_MOST_KEYS] if isinstance(loaded, Mapping) else ():
        yield from value[:_MOST_KEYS] if isinstance(value, list | tuple) else (value,)


@functools.lru_cache(maxsize=64)
def resumes(load: Site | None) -> bool:
    """Return True if the function that loads a file assigns or returns the epoch, step or iteration in it."""
    tree = source.parsed(load.path) if load is not None else None
    if tree is None or load is None:
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    around = [node for node in source.walk(tree) if isinstance(node, functions) and _has(node, load)]
    scope = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno, default=tree)
    names = {
        ast.unparse(target)
        for node in source.walk(scope)
        if isinstance(node, ast.Assign) and _has(node, load)
        for target in node.targets
    }
    kept = (ast.Assign, ast.AnnAssign, ast.Return, ast.For)
    used = [_used(node) for node in source.walk(scope) if isinstance(node, kept)]
    return any(_is_position(one, names) for value in used if value is not None for one in source.walk(value))


def _used(node: ast.AST) -> ast.expr | None:
    """Return the expression with a value that a statement keeps."""
    value: ast.expr | None = node.iter if isinstance(node, ast.For) else getattr(node, "value", None)
    return value


def _has(node: ast.stmt, site: Site) -> bool:
    return node.lineno <= site.line <= (node.end_lineno or node.lineno)


def _is_position(node: ast.AST, names: set[str]) -> bool:
    """Return True for ``loaded["epoch"]`` and ``loaded.get("epoch")``."""
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))):
            pass
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *_]):
            pass
        case _:
            return False
    return ast.unparse(owner) in names and _POSITION.search(key) is not None
