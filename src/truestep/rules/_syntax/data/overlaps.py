"""Overlaps of boxes without a limit at zero, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.syntax import Context, Program, Suspicion, dotted, names_in

_LEAST = frozenset({"min", "minimum", "fmin"})
_MOST = frozenset({"max", "maximum", "fmax"})
_DEEPEST = 3


def unlimited_overlaps(program: Program) -> Iterator[Suspicion]:
    """Yield areas of intersections that are positive for boxes that do not meet: both sides are negative then."""
    for scope in program.functions():
        bindings = [one for ones in scope.bindings.values() for one in ones if one.value is not None]
        compared = {name for node in ast.walk(scope.node) if isinstance(node, ast.Compare) for name in names_in(node)}
        for one in bindings:
            node = one.value
            factors = _factors(node) if node is not None and one.how == "=" and not one.index else []
            sides = [_side(part, one.context, one.order, program) for part in factors]
            used = set().union(*(side or set() for side in sides)) | {one.key}
            set_again = any(each is not one and each.key in (one.key, f"{one.key}[]") for each in bindings)
            if node is None or not sides or None in sides or used & compared or set_again:
                continue
            yield Suspicion(
                node,
                f"`{one.key}` is positive for boxes that do not meet: both of its factors are negative",
                "is no area where a factor is below 0",
                "limit both sides to 0 first, as by `.clamp(min=0)`",
            )


def _factors(node: ast.expr) -> list[ast.expr]:
    """Return the factors of a product of two sides, or the tensor that a call multiplies along a dimension."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [part.value if isinstance(part, ast.Subscript) else part for part in (node.left, node.right)]
    product = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "prod"
    if product and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [node.args[0] if dotted(node.func.value) == "torch" and node.args else node.func.value]
    return []


def _side(node: ast.expr, context: Context, order: int, program: Program, depth: int = 0) -> set[str] | None:
    """Return the names that a side of an intersection is computed from; None for anything else."""
    found, where, at = program.values.origin(node, context, order)
    if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Add) and isinstance(found.right, ast.Constant):
        return _side(found.left, where, at, program, depth + 1) if depth < _DEEPEST else None  # pixels are counted
    if not isinstance(found, ast.BinOp) or not isinstance(found.op, ast.Sub):
        return None
    ends = [program.values.origin(part, where, at)[0] for part in (found.left, found.right)]
    if not _is_call_of(ends[0], _LEAST) or not _is_call_of(ends[1], _MOST):
        return None
    return set(names_in(found)) | set(names_in(node))


def _is_call_of(node: ast.expr, names: frozenset[str]) -> bool:
    """Return True for the smaller or the larger of two values."""
    if not isinstance(node, ast.Call):
        return False
    name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
    values = len(node.args) + (isinstance(node.func, ast.Attribute) and len(node.args) == 1)
    constants = any(isinstance(each, ast.Constant) for each in node.args)
    return name in names and values == 2 and not node.keywords and not constants
