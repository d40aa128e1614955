"""Loops that sum rewards, and loops and lists that run backwards, in the source of the program."""

from __future__ import annotations

import ast
import functools
from types import CodeType

from truestep import source

_STORES = frozenset({"append", "insert", "appendleft", "extend"})
_PLAIN = frozenset({
    "reversed", "range", "len", "zip", "float", "int", "list", "tuple", "enumerate", "item", "detach", "tensor",
    "FloatTensor", "Tensor", "as_tensor", "unsqueeze", "squeeze", "clone", "cpu", "numpy", "max", "min", "bool", "view",
    "zeros_like", "zeros",
})  # fmt: skip
"""Calls that make no log-probability."""
_FLIPS = frozenset({"flip", "flipud", "reverse"})
_FRONT = frozenset({"insert", "appendleft", "extendleft"})


def keeps_order(code: CodeType) -> bool:
    """Return True if no loop of the file that sums, or runs backwards, calls a model or keeps more than one list.

    Such a loop may compute the log-probabilities, or keep the states, in the order of its returns.
    """
    return _loops(code.co_filename)[0]


def leaves_rows_in_order(code: CodeType) -> bool:
    """Return True if nothing in the file runs backwards except for loops, and no list grows at its front."""
    return _loops(code.co_filename)[1]


@functools.lru_cache(maxsize=32)
def _loops(path: str) -> tuple[bool, bool]:
    tree = source.parsed(path)
    if tree is None:
        return False, False
    plain, inside = True, set[int]()
    for node in source.walk(tree):
        if isinstance(node, ast.For) and _runs_backwards(node.iter):
            inside.update(id(one) for one in ast.walk(node.iter))
            plain = plain and _only_sums(node)
        elif isinstance(node, ast.For | ast.While) and any(map(_sums, node.body)):
            plain = plain and _only_sums(node)
    others = any(id(node) not in inside and (_reverses(node) or _grows_at_front(node)) for node in source.walk(tree))
    return plain, not others


def _runs_backwards(node: ast.expr) -> bool:
    return any(map(_reverses, ast.walk(node)))


def _reverses(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "reversed" or name in _FLIPS
        case ast.Slice(step=ast.UnaryOp(op=ast.USub())):
            return True
        case _ if _counts_down(node):
            return True
    return False


def _grows_at_front(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FRONT


def _counts_down(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, _, ast.UnaryOp(op=ast.USub())]):
            return name in ("range", "arange")
    return False


def _sums(statement: ast.stmt) -> bool:
    """Return True for a sum that goes on with a factor, such as ``total = reward + 0.99 * total``."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Add()) as value):
            products = [one for one in ast.walk(value) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)]
            return any(isinstance(one, ast.Name) and one.id == name for node in products for one in ast.walk(node))
    return False


def _only_sums(loop: ast.For | ast.While) -> bool:
    """Return True if a loop stores one list at most, and calls nothing that could be a model."""
    stored = set[str]()
    for node in (one for statement in loop.body for one in ast.walk(statement)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if isinstance(node.func, ast.Attribute) and name in _STORES:
                stored.add(ast.unparse(node.func.value))
            elif name not in _PLAIN:
                return False
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            stored.add(ast.unparse(node.value))
    return len(stored) <= 1
