"""Rewrite one method of torch in place: its source and its line numbers, with calls of ours woven in.

A wrapper around `Module.__call__` breaks ``torch.compile`` of functions. A function made from torch's source, with a
few more statements at the line of the original call, does not, and tracebacks look the same (docs/decisions/0003).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

EXPECTED = """def _wrapped_call_impl(self, *args, **kwargs):
    if self._compiled_call_impl is not None:
        return self._compiled_call_impl(*args, **kwargs)
    else:
        return self._call_impl(*args, **kwargs)"""

WOVEN = """
if _truestep_compiling() or _truestep_coast.inside or (not _truestep_coast.on and _truestep_depth.inside == 1):
    ORIGINAL
_truestep_token = _truestep_enter(self, args)
_truestep_result = None
try:
    CALL
finally:
    _truestep_leave(_truestep_token, _truestep_result)
return _truestep_result
"""


def weave(function: Any, names: dict[str, Any]) -> Callable[..., Any] | None:
    """Return torch's ``_wrapped_call_impl`` with our calls woven in; None if its source is not `EXPECTED`."""
    before = getattr(function, "_truestep_names", None)
    if before is not None:
        names = _chained(before, names)
    try:
        source = textwrap.dedent(inspect.getsource(function))
        line = inspect.getsourcelines(function)[1]
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or ast.unparse(definition) != EXPECTED:
        return None
    indent = len(inspect.getsource(function)) - len(inspect.getsource(function).lstrip())
    original = definition.body[0]
    assert isinstance(original, ast.If)
    positions = _Shift(line - 1, indent)
    positions.visit(tree)
    call = _assigning(original)
    woven = ast.parse(WOVEN).body
    anchor = original.orelse[0]
    for statement in woven:
        for node in ast.walk(statement):
            if hasattr(node, "lineno"):
                ast.copy_location(node, anchor)
    test, attempt = woven[0], woven[3]
    assert isinstance(test, ast.If)
    assert isinstance(attempt, ast.Try)
    test.body = [original]
    attempt.body = [call]
    definition.body = woven
    scope = dict(function.__globals__) | names
    # TorchDynamo takes the globals of a function from the module of this name, where ours are not.
    scope.pop("__name__", None)
    code = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec")
    made: dict[str, Any] = {}
    exec(code, scope, made)
    replacement: Callable[..., Any] = made[function.__name__]
    replacement.__module__, replacement.__qualname__ = function.__module__, function.__qualname__
    replacement._truestep_names = names  # type: ignore[attr-defined]
    return replacement


def compiling(torch: Any) -> Callable[[], bool]:
    """Return a function that returns True while code runs only to be compiled.

    That of torch 2.8 returns True while TorchDynamo runs, but False while the graph is traced again after that.
    """
    asked: Callable[[], bool] = torch.compiler.is_compiling
    if hasattr(torch.compiler, "_compile_session_context"):
        return asked
    context = torch._guards.TracingContext.try_get
    return lambda: asked() or context() is not None


def teach_script(stack: ExitStack, original: Callable[..., Any], replacement: Callable[..., Any]) -> None:
    """Make ``torch.jit.script`` compile the replacement of a C function as the operator of that function."""
    from torch.jit import _builtins

    table: dict[int, str] = _builtins._get_builtin_table()  # type: ignore[no-untyped-call]
    operator = table.get(id(original))
    if operator is not None:
        table[id(replacement)] = operator
        stack.callback(table.pop, id(replacement), None)


class _Outside:
    """A depth that sends every call through the hooks: with two sessions, each counts its own depth."""

    inside = 0
    on = False


def _chained(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the hooks of two sessions that are active at the same time, as one pair."""

    def enter(module: Any, args: tuple[Any, ...], depth: int = 2) -> Any:
        below = depth + 1
        return first["_truestep_enter"](module, args, below), second["_truestep_enter"](module, args, below)

    def leave(token: Any, result: Any, depth: int = 2) -> None:
        second["_truestep_leave"](token[1], result, depth + 1)
        first["_truestep_leave"](token[0], result, depth + 1)

    return second | {
        "_truestep_depth": _Outside,
        "_truestep_coast": _Outside,
        "_truestep_enter": enter,
        "_truestep_leave": leave,
    }


def _assigning(original: ast.If) -> ast.If:
    """Return a copy of the two-way call that assigns its result instead of returning it, at the same positions."""

    def assign(statement: ast.stmt) -> ast.stmt:
        assert isinstance(statement, ast.Return)
        assert statement.value is not None
        name = ast.copy_location(ast.Name("_truestep_result", ast.Store()), statement)
        return ast.copy_location(ast.Assign([name], statement.value), statement)

    made = ast.If(original.test, [assign(original.body[0])], [assign(original.orelse[0])])
    return ast.copy_location(made, original)


class _Shift(ast.NodeVisitor):
    """Shift the positions of a dedented tree to those in its file."""

    def __init__(self, lines: int, columns: int) -> None:
        self.lines, self.columns = lines, columns

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt | ast.expr | ast.arg):
            node.lineno += self.lines
            node.col_offset += self.columns
            if node.end_lineno is not None and node.end_col_offset is not None:
                node.end_lineno += self.lines
                node.end_col_offset += self.columns
        super().generic_visit(node)
