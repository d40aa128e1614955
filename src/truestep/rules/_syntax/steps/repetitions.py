"""Loops that repeat a training for a mean over its results, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_AVERAGING = frozenset(
    {"mean", "std", "stdev", "pstdev", "fmean", "nanmean", "average", "var", "variance", "median", "stack", "mode"}
)
_SHOWING = frozenset({"print", "info", "debug", "log", "set_description", "write"})
_ON_PURPOSE = re.compile(
    r"perf_counter|\bimport time\b|\bfrom time\b|timeit|process_time|elapsed|cuda\.Event|profil|benchmark(?!\s*=)"
    r"|torch\.equal|allclose|array_equal|assert_close|identical|bitwise|bit for bit|sanity|same each"
    r"|(?:check|test|verify|is)_\w*(?:determin|reproduc|same|equal|repeat)",
    re.IGNORECASE,
)
"""Programs that measure the time of equal trainings, or compare them."""
_DEEPEST = 3


def loop_of_repetitions(tree: ast.Module, text: str, line: int) -> ast.AST | None:
    """Return the loop, or the comprehension, that repeats the training of a line for a mean over the results.

    Its variable is not used for the training: it is counted, printed, or the key of a result.

    Args:
        tree: the file.
        text: its source.
        line: a line that runs once in each training, such as that of a seed.

    >>> text = "def run():\\n    seed(0)\\n    return fit()\\nprint(mean([run() for trial in range(5)]))"
    >>> ast.unparse(loop_of_repetitions(ast.parse(text), text, 2))
    '[run() for trial in range(5)]'
    >>> changed = text.replace("run() for", "run(trial) for").replace("def run()", "def run(trial)")
    >>> loop_of_repetitions(ast.parse(changed), changed, 2) is None
    True
    """
    if _ON_PURPOSE.search(text):
        return None
    names, direct = _callers(tree, line), _innermost(tree, line)
    for scope in (tree, *(one for one in ast.walk(tree) if isinstance(one, _FUNCTIONS))):
        own = list(_own(scope))
        called = {_name(one.func) for one in own if isinstance(one, ast.Call)}
        if called.isdisjoint(_AVERAGING):
            continue
        for loop in own:
            if isinstance(loop, _COMPREHENSIONS):
                repeats = any(_calls(part, names) for part in _elements(loop))
                if repeats and len(loop.generators) == 1 and not _is_used(loop.generators[0].target, _elements(loop)):
                    return loop
            elif isinstance(loop, ast.For):
                inside = loop.lineno <= line <= (loop.end_lineno or 0) and scope is direct
                if (inside or any(_calls(one, names) for one in loop.body)) and not _is_used(loop.target, loop.body):
                    return loop
    return None


def _elements(loop: ast.AST) -> list[ast.AST]:
    return [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]  # type: ignore[attr-defined]


def _callers(tree: ast.Module, line: int) -> set[str]:
    """Return the names of the functions that run a line: the one around it, and those that call it."""
    around = _innermost(tree, line)
    names = {around.name} if isinstance(around, _FUNCTIONS) else set()
    for _ in range(_DEEPEST if names else 0):
        names |= {one.name for one in ast.walk(tree) if isinstance(one, _FUNCTIONS) and _calls(one, names)}
    return names


def _innermost(tree: ast.Module, line: int) -> ast.AST:
    around = [
        one for one in ast.walk(tree) if isinstance(one, _FUNCTIONS) and one.lineno <= line <= (one.end_lineno or 0)
    ]
    return max(around, key=lambda one: one.lineno) if around else tree


def _calls(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(one, ast.Call) and _name(one.func) in names for one in ast.walk(node))


def _is_used(target: ast.expr, body: list[ast.stmt] | list[ast.AST]) -> bool:
    """Return True if the variable of a loop is an operand or an argument of more than its output."""
    names = {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    return any(_reads(one, names) for one in body)


def _reads(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _name(node.func) in _SHOWING):
        return False
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return _reads(node.value, names)
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_reads(one, names) for one in ast.iter_child_nodes(node))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or module, without those of inner functions."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
