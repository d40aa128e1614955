"""Variables of loops that a statement binds to a new value, as in ``for p in params: p = p - lr * p.grad``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep import source

_ASIDE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.If, ast.IfExp, ast.Try, ast.Match)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rebound(scope: ast.AST) -> Iterator[tuple[ast.Assign, str]]:
    """Yield the statements that make a new value of the variable of their loop, which nothing reads, with its name.

    >>> code = "for p in params:\\n    p = p - 0.1 * p.grad\\nfor q in params:\\n    q = 2 * q\\n    kept.append(q)"
    >>> [(statement.lineno, name) for statement, name in rebound(ast.parse(code))]
    [(2, 'p')]
    """
    for loop in _own(scope):
        if not isinstance(loop, ast.For):
            continue
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        body = list(_straight(loop.body))
        for at, statement in enumerate(body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
                    later = _loads(*body[at + 1 :], *loop.orelse)
                    if name in names & _loads(value) - later and not _read_behind(scope, loop, name):
                        yield statement, name


def is_descent(value: ast.expr, name: str) -> bool:
    """Return True if a new value of a variable is made from its gradient: the variable is a tensor."""
    parts = (node for node in ast.walk(value) if isinstance(node, ast.Attribute) and node.attr == "grad")
    return any(isinstance(part.value, ast.Name) and part.value.id == name for part in parts)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run whenever a scope does: not those of functions and classes, or under a condition."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, _ASIDE):
            yield child
            yield from _own(child)


def _straight(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that every pass runs, with those of `with` blocks, in their order."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _straight(statement.body)
        else:
            yield statement


def _loads(*nodes: ast.AST) -> set[str]:
    """Return the names that are read."""
    found = (one for node in nodes for one in ast.walk(node))
    return {one.id for one in found if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store)}


def _read_behind(scope: ast.AST, loop: ast.For, name: str) -> bool:
    """Return True if a variable is read outside of a loop, other than in loops that bind it themselves."""
    inside = {id(node) for node in ast.walk(loop)}
    for node in source.walk(scope):
        binds = node.generators if isinstance(node, _COMPREHENSIONS) else []
        targets = [node.target] if isinstance(node, ast.For | ast.AsyncFor) else [bind.target for bind in binds]
        if any(isinstance(one, ast.Name) and one.id == name for target in targets for one in ast.walk(target)):
            inside.update(id(one) for one in ast.walk(node))
    reads = (node for node in source.walk(scope) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store))
    return any(node.id == name and id(node) not in inside for node in reads)
