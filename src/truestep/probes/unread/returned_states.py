"""The source of models that take a state and return the next one by the name of the same parameter."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from types import CodeType

from truestep import source
from truestep.probes.unread.state_loops import values

_STATE = re.compile(r"(^|_)(h|hx|hc|hidden)\d*($|_)")
_BLOCKS = (ast.For, ast.While, ast.With)


@functools.lru_cache(maxsize=256)
def returns_state(code: CodeType, place: int | str, part: int, *, recurrent: bool) -> bool:
    """Return True if a forward function surely returns the next state, as in ``y, h = self.gru(x, h)``.

    The last assignment to the parameter of the state reads the state and another parameter, each ``return`` has the
    name of the parameter at the place of the state, and nothing in the function stores it elsewhere.

    Args:
        code: the function.
        place: position, without `self`, or keyword of the state in the call.
        part: place of the state in the result.
        recurrent: True if the model has a recurrent layer of torch; else the name must be that of a hidden state.
    """
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = place if isinstance(place, str) else names[place + 1] if place + 1 < code.co_argcount else ""
    function = _function(code)
    if function is None or name not in names or not (recurrent or _STATE.search(name)):
        return False
    nodes = list(source.walk(function))
    stored = [one for one in nodes if isinstance(one, ast.Attribute | ast.Subscript) and isinstance(one.ctx, ast.Store)]
    calls = [one for one in nodes if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    inner = [one for one in nodes if isinstance(one, ast.Lambda | ast.FunctionDef | ast.Yield) and one is not function]
    if stored or calls or inner:
        return False
    returned = [one.value for one in nodes if isinstance(one, ast.Return)]
    if not returned or not all(_has_at(one, part, name) for one in returned):
        return False
    state, inputs = (_followed(function, begun) for begun in ({name}, {*names[1:]} - {name}))
    last = max((one for one in nodes if _stores(one, name)), key=lambda one: getattr(one, "lineno", 0), default=None)
    if not isinstance(last, ast.Assign) or last not in list(_plain(function.body)):
        return False
    read = values(last.value)
    return not read.isdisjoint(state) and not read.isdisjoint(inputs)


def _function(code: CodeType) -> ast.FunctionDef | None:
    tree = source.parsed(code.co_filename)
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if min([node.lineno, *(one.lineno for one in node.decorator_list)]) == code.co_firstlineno:
                return node
    return None


def _has_at(value: ast.expr | None, part: int, name: str) -> bool:
    parts = value.elts if isinstance(value, ast.Tuple) else []
    if part >= len(parts) or any(isinstance(one, ast.Starred) for one in parts):
        return False
    one = parts[part]
    return isinstance(one, ast.Name) and one.id == name


def _stores(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.Delete):
        return False
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
    return any(isinstance(one, ast.Name) and one.id == name for target in targets for one in ast.walk(target))


def _plain(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run in each call: not those of a condition, such as the first state of zeros."""
    for one in body:
        yield one
        if isinstance(one, _BLOCKS):
            yield from _plain(one.body)


def _followed(function: ast.FunctionDef, begun: set[str]) -> set[str]:
    """Return the names with values that follow from some parameters."""
    found, assigned = set(begun), [one for one in source.walk(function) if isinstance(one, ast.Assign)]
    for _ in assigned:
        for one in assigned:
            if not found.isdisjoint(values(one.value)):
                found |= {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found
