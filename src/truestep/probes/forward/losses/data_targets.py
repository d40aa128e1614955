"""The source of the target of a loss: labels of the data, which cannot be made of the result of this step."""

from __future__ import annotations

import ast
import functools

from truestep import source
from truestep.events import Site

_CHOICES = frozenset({
    "argmax", "argmin", "max", "topk", "sort", "round", "softmax", "sigmoid", "log_softmax", "sign", "heaviside",
    "detach", "no_grad", "predict", "model", "net",
})  # fmt: skip
"""Functions and models that make targets of results."""
_FORMS = frozenset({
    "to", "long", "int", "float", "double", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "type",
    "cuda", "cpu", "contiguous",
})  # fmt: skip
_SECOND = 2
_DEEPEST = 3
"""Variables that get parts of each other."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@functools.lru_cache(maxsize=64)
def is_of_data(site: Site) -> bool:
    """Return True if the target of a call is only bound by a loop over data, or before the loops around the call."""
    tree = source.parsed(site.path) if site.column >= 0 else None
    around, call = _place(tree, site) if tree is not None else ([], None)
    if tree is None or call is None:
        return False
    given = next((one.value for one in call.keywords if one.arg == "target"), None)
    given = call.args[1] if given is None and len(call.args) >= _SECOND else given
    return _is_data(_base(given), tree, around, _DEEPEST)


def _is_data(name: str | None, tree: ast.AST, around: list[ast.AST], deep: int) -> bool:
    scopes = [one for one in around if isinstance(one, _FUNCTIONS)]
    given = {one.arg for scope in scopes for one in ast.walk(scope) if isinstance(one, ast.arg)}
    if name is None or name in given or not deep:
        return False
    bound = _bindings(scopes[-1] if scopes else tree, name) or _bindings(tree, name)
    loops = [one for one in around if isinstance(one, _LOOPS)]
    inside = {id(node) for loop in loops for node in source.walk(loop)} - {id(loop) for loop in loops}
    for node, value in bound:
        made = id(node) in inside and not (_base(value) == name or _is_data(_base(value), tree, around, deep - 1))
        if made or _chooses(value):
            return False
    return bool(bound)


def _place(tree: ast.AST, site: Site) -> tuple[list[ast.AST], ast.Call | None]:
    """Return the functions and loops around a call, the outermost first, and the call."""
    around, found = list[ast.AST](), None
    for node in source.walk(tree):
        if isinstance(node, (*_FUNCTIONS, *_LOOPS)) and node.lineno <= site.line <= (node.end_lineno or 0):
            around.append(node)
        elif isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (site.line, site.column):
            if (node.end_lineno, node.end_col_offset) == (site.end_line, site.end_column):
                found = node
    return around, found


def _base(node: ast.expr | None) -> str | None:
    """Return the variable of a target, below parts and other forms of it."""
    while node is not None and not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FORMS:
            node = node.func.value
        else:
            return None
    return node.id if node is not None else None


def _bindings(scope: ast.AST, name: str) -> list[tuple[ast.AST, ast.expr]]:
    """Return the statements of a scope that bind a variable, with the values; any other way to bind it is a choice."""
    found: list[tuple[ast.AST, ast.expr]] = []
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Assign(targets=targets, value=value):
                found += [(node, part) for one in targets for part in _parts(one, value, name)]
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value) if _binds(target, name):
                found.append((node, value))
            case ast.AugAssign(target=target) | ast.NamedExpr(target=target) if _binds(target, name):
                found.append((node, ast.Name("argmax")))
            case ast.With(items=items) if any(one.optional_vars and _binds(one.optional_vars, name) for one in items):
                found.append((node, ast.Name("argmax")))
        if not isinstance(node, _FUNCTIONS):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _parts(target: ast.expr, value: ast.expr, name: str) -> list[ast.expr]:
    """Return the values that an assignment gives to a variable."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return [part for one, each in pairs for part in _parts(one, each, name)]
    return [value] if _binds(target, name) else []


def _binds(target: ast.expr, name: str) -> bool:
    """Return True if a target is a variable, or writes to a part of it."""
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(target))


def _chooses(value: ast.expr) -> bool:
    words = {getattr(one, "attr", getattr(one, "id", "")) for one in ast.walk(value)}
    return not words.isdisjoint(_CHOICES)
