"""Pairs of variables that the source compares with each other, or gives to one figure: collected predictions, targets.

A variable counts as itself only as long as everything that is stored in it is an empty list, or a conversion of itself
or of another variable: codes that are translated before the comparison are others.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import NamedTuple

from truestep import source
from truestep.probes.evaluation.functions import ORDERED, SCORES
from truestep.probes.evaluation.quotients import body_of

_SYMMETRIC = frozenset({
    "f1_score", "balanced_accuracy_score", "cohen_kappa_score", "matthews_corrcoef", "jaccard_score",
})  # fmt: skip
"""Without tables of confusion, by which clusters are matched with classes."""
_FIGURES = ORDERED | SCORES | _SYMMETRIC
_JOINING = frozenset({
    "array", "asarray", "concatenate", "hstack", "cat", "concat", "tensor", "as_tensor", "LongTensor", "from_numpy",
    "list", "tuple",
})  # fmt: skip
_CONVERTING = frozenset({
    "numpy", "cpu", "long", "int", "float", "astype", "to", "flatten", "ravel", "squeeze", "tolist", "detach", "copy",
})  # fmt: skip
_KEEPING = _CONVERTING | frozenset({"cuda", "view", "reshape", "type", "double"})
_DEEPEST = 4


class Pair(NamedTuple):
    """Two variables that are compared.

    Attributes:
        first: the variable on the left, or the first argument.
        second: the other one.
        name: the function of a figure; "eq" for a comparison.
        node: the expression.
    """

    first: str
    second: str
    name: str
    node: ast.expr


@functools.lru_cache(maxsize=64)
def pairs_of(path: str, first: int) -> tuple[Pair, ...]:
    """Return the pairs of the function that begins at a line, or of a module without its functions."""
    nodes = list(body_of(path, first))
    stored: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        _store(node, stored)
    return tuple(_pairs(nodes, stored))


@functools.lru_cache(maxsize=64)
def given_names(path: str, first: int) -> frozenset[str]:
    """Return the variables of a function, or of a module, that a loop gives: its items, their parts and conversions."""
    nodes = list(body_of(path, first))
    loops = [node.target for node in nodes if isinstance(node, ast.For)]
    names = {one.id for target in loops for one in source.walk(target) if isinstance(one, ast.Name)}
    for _ in range(_DEEPEST):
        for node in nodes:
            if not isinstance(node, ast.Assign):
                continue
            pairs = [(target, node.value) for target in node.targets]
            if isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            for target, value in pairs:
                if _root(value) in names:
                    names |= {one.id for one in source.walk(target) if isinstance(one, ast.Name)}
    return frozenset(names)


def _root(node: ast.expr) -> str:
    """Return the variable that an expression is a part or a conversion of; "" for another value."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _KEEPING:
                node = inner
            case ast.Subscript(value=inner):
                node = inner
            case _:
                return ""
    return node.id


def _store(node: ast.AST, stored: dict[str, list[ast.expr | None]]) -> None:
    """Enter the values that a statement stores in variables; None for an unknown one."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                several = isinstance(target, ast.Tuple | ast.List)
                values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                for place, name in enumerate(names):
                    part = value if not several else values[place] if len(values) == len(names) else None
                    if isinstance(name, ast.Name):
                        stored.setdefault(name.id, []).append(part)
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            stored.setdefault(name, []).append(value)
        case ast.For(target=target) | ast.comprehension(target=target) | ast.NamedExpr(target=target):
            for one in source.walk(target):
                if isinstance(one, ast.Name):
                    stored.setdefault(one.id, []).append(None)


def _pairs(nodes: list[ast.AST], stored: dict[str, list[ast.expr | None]]) -> Iterator[Pair]:
    zipped: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.comprehension(
                target=ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=two)]),
                iter=ast.Call(func=ast.Name(id="zip"), args=[ast.Name(id=first), ast.Name(id=second)]),
            ):
                zipped |= {one: first, two: second}
    for node in nodes:
        sides: list[ast.expr]
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                sides, name = [left, right], "eq"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _FIGURES:
                named = {word.arg: word.value for word in node.keywords}
                given = [*node.args[:2], *(named[key] for key in ("y_true", "y_pred", "y_score") if key in named)]
                if len(given) != 2:
                    continue
                sides = given
            case _:
                continue
        known = [_collected(zipped.get(key, key), stored) if (key := _named(side)) else "" for side in sides]
        if all(known) and known[0] != known[1]:
            yield Pair(known[0], known[1], name, node)


def _named(node: ast.expr) -> str:
    """Return the variable that an expression converts; "" for another value."""
    while isinstance(node, ast.Call):
        match node.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="np" | "numpy" | "torch"), attr=name):
                if name not in _JOINING or not node.args:
                    return ""
                node = node.args[0]
            case ast.Attribute(value=inner, attr=name) if name in _CONVERTING:
                node = inner
            case _:
                return ""
    return node.id if isinstance(node, ast.Name) else ""


def _collected(name: str, stored: dict[str, list[ast.expr | None]], depth: int = 0) -> str:
    """Return the list that a variable is, or is converted from; "" if anything else is stored in it."""
    found = {name}
    for value in stored.get(name, ()):
        if value is None:
            return ""
        if _is_empty(value) or (made := _named(value)) == name:
            continue
        if not made or depth >= _DEEPEST:
            return ""
        found = {_collected(made, stored, depth + 1)}
    return found.pop() if len(stored.get(name, ())) > 0 else ""


def _is_empty(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=[]) | ast.Call(func=ast.Name(id="list"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="array" | "tensor" | "empty"), args=[inner, *_]):
            return _is_empty(inner) or (isinstance(inner, ast.Constant) and inner.value == 0)
    return False
