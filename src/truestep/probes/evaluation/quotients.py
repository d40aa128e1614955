"""Quotients that a program computes of its counters, such as ``correct / total`` in a line that prints them.

Only arithmetic of numbers that variables hold, and lengths of data, is repeated; nothing of the program runs.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.evaluation.libraries import of_math

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ARITHMETIC = (ast.Div, ast.Mult, ast.Add, ast.Sub)


class Quotient(NamedTuple):
    """A division in the source.

    Attributes:
        node: the expression, with a factor such as 100 around the division.
        text: its source.
        label: text in front of it, in an f-string or as an argument.
        place: its line.
    """

    node: ast.expr
    text: str
    label: str
    place: Site


def quotients(code: CodeType) -> tuple[Quotient, ...]:
    """Return the quotients in the source of a function, or of a module without its functions."""
    return quotients_of(code.co_filename, code.co_firstlineno if code.co_flags & inspect.CO_OPTIMIZED else 0)


@functools.lru_cache(maxsize=64)
def quotients_of(path: str, first: int = 0) -> tuple[Quotient, ...]:
    """Return the quotients of the function that begins at a line, or of a module without its functions."""
    tree = _tree(path, first)
    return () if tree is None else tuple(_found(tree, path))


def body_of(path: str, first: int = 0) -> Iterator[ast.AST]:
    """Yield the nodes of the function that begins at a line, or of a module, without those of inner functions."""
    tree = _tree(path, first)
    queue = [] if tree is None else list(ast.iter_child_nodes(tree))
    while queue:
        node = queue.pop()
        if not isinstance(node, _FUNCTIONS):
            yield node
            queue += ast.iter_child_nodes(node)


def _tree(path: str, first: int) -> ast.AST | None:
    tree = source.parsed(path)
    if tree is None or not first:
        return tree
    functions = (one for one in source.walk(tree) if isinstance(one, ast.FunctionDef))
    return next((one for one in functions if first in (one.lineno, *(d.lineno for d in one.decorator_list))), None)


def _found(tree: ast.AST, path: str) -> Iterator[Quotient]:
    queue: list[tuple[ast.AST, str]] = [(one, "") for one in ast.iter_child_nodes(tree)]
    while queue:
        node, label = queue.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.BinOp) and _divides(node):
            place = Site(path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            yield Quotient(node, ast.unparse(node), label.strip(), place)
            continue
        if isinstance(node, ast.JoinedStr | ast.Call):
            before = ""
            for part in node.values if isinstance(node, ast.JoinedStr) else (node.func, *node.args):
                queue.append((part, before))
                before = str(part.value) if isinstance(part, ast.Constant) else before
            queue += [(keyword.value, "") for keyword in getattr(node, "keywords", ())]
            continue
        queue += [(one, label) for one in ast.iter_child_nodes(node)]


def _divides(node: ast.BinOp) -> bool:
    """Return True for a division, also with a factor around it: ``100 * correct / total``."""
    if isinstance(node.op, ast.Div):
        return True
    parts = (node.left, node.right)
    factor = any(isinstance(part, ast.Constant) for part in parts)
    return isinstance(node.op, ast.Mult) and factor and any(isinstance(p, ast.BinOp) and _divides(p) for p in parts)


def value(torch: Any, node: ast.expr, names: Mapping[str, object]) -> float | None:
    """Return the value of a quotient; None if it is not arithmetic of numbers that variables hold."""
    try:
        found = _value(torch, node, names)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return float(found)


def _value(torch: Any, node: ast.expr, names: Mapping[str, object]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return _plain(torch, names[name])
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
            one, two = _value(torch, left, names), _value(torch, right, names)
            if isinstance(op, ast.Div):
                return one / two
            return one * two if isinstance(op, ast.Mult) else one + two if isinstance(op, ast.Add) else one - two
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return length(torch, names[name])
        case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(value=ast.Name(id=name), attr="dataset")]):
            loader = names[name]
            return length(torch, vars(loader)["dataset"]) if _is_loader(torch, loader) else _none()
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="item"), args=[], keywords=[]):
            return _plain(torch, names[name])
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return float(_value(torch, left, names) ** _value(torch, right, names))
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)):
            held = names[name]
            return _plain(torch, held[key]) if type(held) is dict else _none()
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=[inner], keywords=[]):
            function = of_math(attr) if names[name] is math else None
            return float(function(_value(torch, inner, names))) if function is not None else _none()
    return _none()


def _none() -> float:
    raise ValueError


def _plain(torch: Any, held: object) -> float:
    if type(held) is torch.Tensor and held.numel() == 1 and held.is_cpu:  # type: ignore[attr-defined]
        return float(held.detach())  # type: ignore[attr-defined]
    kind = type(held)
    if kind in (int, float) or (kind.__module__ == "numpy" and kind.__name__.startswith(("float", "int"))):
        return float(held)  # type: ignore[arg-type]
    return _none()


def length(torch: Any, held: object) -> int:
    """Return the length of a list, a tensor, a loader or a data set.

    Raises:
        ValueError: it is another object.
    """
    known = type(held) in (list, tuple, range, torch.Tensor) or _is_loader(torch, held)
    data = torch.utils.data
    return len(held) if known or isinstance(held, data.Dataset) else int(_none())  # type: ignore[arg-type]


def _is_loader(torch: Any, held: object) -> bool:
    return isinstance(held, torch.utils.data.DataLoader)
