"""The output of a result of a model on one rank only, read from the source of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep import source
from truestep.events import Site

_OUTPUTS = ("print", "log", "info", "write", "add_scalar", "add_scalars", "log_metrics", "set_postfix", "echo")
_COLLECTS = ("append", "add", "update", "extend")
_RANKS = ("rank", "main_process", "is_main", "is_master", "master", "is_leader", "primary")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST_ROUNDS = 8


def printed_by_one_rank(call: Site) -> Site | None:
    """Return the first output of a result of a call that a condition on the rank guards.

    Args:
        call: line of the call of a model.

    Returns:
        None if the result is never printed, or if every rank prints it.
    """
    tree = source.parsed(call.path)
    if tree is None:
        return None
    function = _around(tree, call.line)
    results = _results(tree, function, call.line)
    outputs = [found for found in _outputs(tree) if any(_names(part) & results for part in _given(found[0]))]
    if not outputs or not all(guarded for _, guarded in outputs):
        return None
    first = min(outputs, key=lambda found: found[0].lineno)[0]
    return Site(call.path, first.lineno, first.col_offset, first.end_lineno or 0, first.end_col_offset or 0, "")


def _around(tree: ast.Module, line: int) -> ast.AST:
    """Return the innermost function around a line; the module if there is none."""
    around = [node for node in source.walk(tree) if isinstance(node, _FUNCTIONS) and _has(node, line)]
    return max(around, key=lambda node: node.lineno, default=tree)


def _has(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None)
    return last is not None and first <= line <= last


def _results(tree: ast.Module, function: ast.AST, line: int) -> set[str]:
    """Return the names of values that are computed from the call, in its function and where that is called."""
    names: set[str] = set()
    returned = ""
    for _ in range(_MOST_ROUNDS):
        before = len(names)
        for node in source.walk(function):
            if isinstance(node, ast.Return) and node.value is not None and _depends(node.value, line, "", names):
                returned = getattr(function, "name", "")
            names |= _bound(node, line, "", names)
        if returned:
            for node in source.walk(tree):
                names |= _bound(node, 0, returned, names)
        if len(names) == before:
            break
    return names


def _bound(node: ast.AST, line: int, called: str, names: set[str]) -> set[str]:
    """Return the names that a statement binds to a value that depends on the call."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
        if node.value is None or not _depends(node.value, line, called, names):
            return set()
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {name for target in targets for name in _names(target)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COLLECTS:
        return _names(node.func.value) if any(_depends(value, line, called, names) for value in node.args) else set()
    return set()


def _depends(value: ast.AST, line: int, called: str, names: set[str]) -> bool:
    """Return True if a value contains a call on a line, a call of a function by name, or one of some names."""
    calls = [node for node in source.walk(value) if isinstance(node, ast.Call)]
    return any(_has(call, line) or _name(call) == called != "" for call in calls) or bool(_names(value) & names)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _names(node: ast.AST) -> set[str]:
    """Return the variables in an expression; attributes of ``self`` as "self.name"."""
    found = set()
    for part in source.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            found.add(f"self.{part.attr}")
        elif isinstance(part, ast.Name) and part.id != "self":
            found.add(part.id)
    return found


def _given(call: ast.Call) -> Iterator[ast.AST]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _outputs(node: ast.AST, guarded: bool = False) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls that print or log, and whether a condition on the rank guards each."""
    if isinstance(node, ast.Call) and _name(node) in _OUTPUTS:
        yield node, guarded
    if isinstance(node, ast.If | ast.IfExp) and _is_of_rank(node.test):
        guarded = True
    for field in ast.iter_child_nodes(node):
        yield from _outputs(field, guarded)


def _is_of_rank(test: ast.AST) -> bool:
    """Return True for a condition such as ``rank == 0`` or ``is_main_process()``."""
    words = [getattr(node, "attr", "") or getattr(node, "id", "") for node in source.walk(test)]
    return any(part in word.lower() for word in words for part in _RANKS)
