"""Statements of a function in their order, and the parts of their expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.syntax.choices.words import words_of

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Statement = tuple[ast.stmt, bool, "ast.For | None"]
"""A simple statement, or the head of a loop; whether it may not run; the loop over candidates around it."""


def statements_of(body: list[ast.stmt], *, guarded: bool, loop: ast.For | None) -> Iterator[Statement]:
    """Yield the statements of a function in their order, without those of inner functions."""
    for one in body:
        if isinstance(one, _INNER):
            continue
        if isinstance(one, ast.For | ast.AsyncFor | ast.While):
            if isinstance(one, ast.For):
                yield ast.copy_location(ast.For(one.target, one.iter, [], []), one), guarded, None
            inner = one if isinstance(one, ast.For) and isinstance(one.target, ast.Name) else None
            yield from statements_of(one.body, guarded=True, loop=inner)
            yield from statements_of(one.orelse, guarded=True, loop=loop)
        elif isinstance(one, ast.If):
            main = "__name__" in ast.unparse(one.test)
            yield from statements_of(one.body, guarded=guarded or not main, loop=loop)
            yield from statements_of(one.orelse, guarded=True, loop=loop)
        elif isinstance(one, ast.With | ast.AsyncWith):
            yield from statements_of(one.body, guarded=guarded, loop=loop)
        elif isinstance(one, ast.Try):
            for part in (one.body, *(handler.body for handler in one.handlers), one.orelse, one.finalbody):
                yield from statements_of(part, guarded=True, loop=loop)
        else:
            yield one, guarded, loop


def pairs_of(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of a statement with their values."""
    if isinstance(statement, ast.For):
        yield statement.target, statement.iter
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign) and statement.value is not None:
        yield statement.target, statement.value
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        value = statement.value  # type: ignore[attr-defined]
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            if len(target.elts) == len(value.elts):
                yield from zip(target.elts, value.elts, strict=True)
                continue
        yield target, value


def stored_in(target: ast.expr) -> list[str]:
    """Return the variables of a target; an attribute of an object is one, too."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for one in target.elts for name in stored_in(one)]
    return [target.id] if isinstance(target, ast.Name) else []


def names_of(node: ast.AST) -> Iterator[str]:
    """Yield the variables, attributes and keys of an expression, without the functions that it calls."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Call):
            function = one.func.value if isinstance(one.func, ast.Attribute) else None
            waiting.extend(part for part in (function, *one.args, *one.keywords) if part is not None)
            continue
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier():
            yield one.value
        waiting.extend(ast.iter_child_nodes(one))


def given_to(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def sides_of(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return the sides of a comparison with labels, or of an operation on decisions and labels."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return node.left, node.comparators[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.Mult | ast.Sub):
        return node.left, node.right
    return None


def splits(call: ast.Call) -> bool:
    """Return True for a function that returns parts of its samples."""
    return bool(words_of(last_name(call.func)) & {"split", "halves", "half", "chunk", "partition", "divide", "random"})


def unwrapped(node: ast.expr) -> ast.expr:
    """Return the expression in conversions such as ``float(x)`` and ``x.item()``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not node.args:
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "round") and node.args:
            node = node.args[0]
        else:
            break
    return node


def last_name(function: ast.expr) -> str:
    """Return the name of a function without the object or module before it."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def within(node: ast.AST, other: ast.AST) -> bool:
    return any(one is node for one in ast.walk(other))


def texts_of(node: ast.AST) -> Iterator[str]:
    """Yield the names and texts of a statement."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
