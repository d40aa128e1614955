"""Targets of Bellman's form in the source of a function: a reward plus a discount times a value."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from truestep.probes.variables.origins import scope_of

_SHAPES = frozenset({
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "double", "to", "detach", "clone", "contiguous",
})  # fmt: skip


class Target(NamedTuple):
    """An expression of the form of a target."""

    name: str
    """The variable that it is stored in; empty if it is an argument."""
    reward: ast.expr
    factors: tuple[ast.expr, ...]
    node: ast.expr


@functools.lru_cache(maxsize=64)
def targets_of(code: CodeType) -> tuple[Target, ...]:
    """Return the sums of a reward and a product in a function or file that are stored, or given to a call."""
    found: list[Target] = []
    for node in scope_of(code):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                found += _sums(_bare(value), name)
            case ast.Call(args=[_, second, *_]):
                found += _sums(_bare(second), "")
    return tuple(found)


def _sums(node: ast.expr, name: str) -> Iterator[Target]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return
    for reward, product in ((node.left, node.right), (node.right, node.left)):
        factors = tuple(_factors(product))
        if len(factors) > 1 and isinstance(_bare(reward), ast.Name | ast.Attribute | ast.Subscript):
            yield Target(name, _bare(reward), factors, node)


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _bare(node: ast.expr) -> ast.expr:
    """Return an expression without the methods and the indices that change its shape or type only."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _SHAPES:
                node = inner
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=parts)) if all(map(_is_whole, parts)):
                node = inner
            case _:
                return node


def _is_whole(part: ast.expr) -> bool:
    return ast.unparse(part) in (":", "None", "...")


def following_of(code: CodeType, target: Target) -> frozenset[str]:
    """Return the variables that the value in a target is computed from, directly or by one variable between."""
    found = {node.id for factor in target.factors for node in ast.walk(factor) if isinstance(node, ast.Name)}
    for node in scope_of(code):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in found:
                found = found | {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    return frozenset(found)


def is_only_subtracted(code: CodeType, name: str) -> bool:
    """Return True if a function or file reads a variable as a side of differences only."""
    nodes = scope_of(code)
    sides = {
        id(_bare(side))
        for node in nodes
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        for side in (node.left, node.right)
    }
    reads = [
        node for node in nodes if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    return bool(reads) and all(id(node) in sides for node in reads)
