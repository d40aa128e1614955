"""Find a sum over a loop that is not the sum of that loop, and the rows of a set that a loop takes in each pass.

It is written with ``=`` for ``+=``, so that only the last pass remains in it, or is not set to zero before each run of
the loop.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.forward.results import call_at

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_EMPTY = frozenset({"zeros", "tensor", "zeros_like"})
_WITH_STEP = 3
"""Arguments of a range with a step."""
_SPLITS = frozenset({"split", "chunk", "tensor_split", "array_split"})
_LENGTHS = frozenset({"len", "size", "shape", "numel"})


class Loop(NamedTuple):
    """The loop around a call.

    Attributes:
        name: variable that is not the sum of the loop; "" without one.
        use: behind the loop: "divided", "divisor" or "differentiated", if each pass overwrites it; "kept" if it grows
            over all runs of the loop, and is divided by the total of one.
        place: the assignment in the loop.
        trains: True if the loop has a backward pass.
    """

    name: str = ""
    use: str = ""
    place: Site | None = None
    trains: bool = False


@functools.lru_cache(maxsize=256)
def loop_around(site: Site) -> Loop | None:
    """Return the innermost loop around the call at a site; None if there is none in its function."""
    found = call_at(site)
    if found is None:
        return None
    node, parents = found[0], found[1]
    loop: ast.AST = node
    while not isinstance(loop, _LOOPS):
        if isinstance(loop, _FUNCTIONS) or loop not in parents:
            return None
        loop = parents[loop]
    function: ast.AST = loop
    while function in parents and not isinstance(function, _FUNCTIONS):
        function = parents[function]
    trains = any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in source.walk(loop))
    for statement in assignments(loop.body):
        name = statement.targets[0].id  # type: ignore[attr-defined]
        if is_read(name, loop) or not _is_zero_before(name, function, loop):
            continue
        use = _use(name, function, loop)
        if use == "divisor" and not _is_length(statement.value):
            continue
        if use and _varies(statement, loop):
            return Loop(name, use, place_of(statement, site), trains)
    for grown in (one for one in source.walk(loop) if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add)):
        if isinstance(grown.target, ast.Name) and _is_kept(grown.target.id, function, loop, parents):
            return Loop(grown.target.id, "kept", place_of(grown, site), trains)
    return Loop(trains=trains)


def assignments(body: list[ast.stmt]) -> Iterator[ast.Assign]:
    """Yield the assignments to a name that run in each pass of a loop."""
    for statement in body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            if isinstance(statement.targets[0], ast.Name):
                yield statement
        elif isinstance(statement, ast.With):
            yield from assignments(statement.body)


def is_read(name: str, loop: ast.AST) -> bool:
    """Return True if a variable is read in a loop, or written there in another way."""
    names = [one for one in source.walk(loop) if isinstance(one, ast.Name) and one.id == name]
    return len(names) != 1


def _is_zero_before(name: str, function: ast.AST, loop: ast.AST) -> bool:
    """Return True if the last assignment to a variable before a loop makes it zero."""
    line = getattr(loop, "lineno", 0)
    before = [
        node
        for node in source.walk(function)
        if isinstance(node, ast.Assign) and node.lineno < line and name in _names(node.targets)
    ]
    return bool(before) and _is_zero(max(before, key=lambda node: node.lineno), name)


def _names(targets: list[ast.expr]) -> set[str]:
    return {one.id for target in targets for one in source.walk(target) if isinstance(one, ast.Name)}


def _is_zero(node: ast.Assign, name: str) -> bool:
    for target in node.targets:
        values = [node.value]
        names = [target]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            names, values = list(target.elts), list(node.value.elts)
        for one, value in zip(names, values, strict=False):
            if isinstance(one, ast.Name) and one.id == name:
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _EMPTY:
                    return value.func.attr != "tensor" or all(_is_number(part) for part in value.args)
                return _is_number(value)
    return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 0


def _use(name: str, function: ast.AST, loop: ast.AST) -> str:
    """Return the use of a variable behind a loop, up to the next assignment to it."""
    end = getattr(loop, "end_lineno", 0)
    for node in source.walk(function):
        if getattr(node, "lineno", 0) <= end:
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if _holds(node.left, name):
                return "divided"
            if isinstance(node.right, ast.Name) and node.right.id == name:
                return "divisor"
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) and _names([node.target]) == {name}:
            return "divided"
        if isinstance(node, ast.Attribute) and node.attr == "backward" and _holds(node.value, name):
            return "differentiated"
    return ""


def _holds(node: ast.expr, name: str) -> bool:
    """Return True if an expression is a variable, also scaled, as a number, or in brackets."""
    match node:
        case ast.Name(id=found):
            return found == name
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            return _holds(left, name) or _holds(right, name)
        case ast.Call(func=ast.Attribute(value=inner)):
            return _holds(inner, name)
        case ast.Call(func=ast.Name(id="float"), args=[inner]):
            return _holds(inner, name)
    return False


def _is_length(node: ast.expr) -> bool:
    read = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in source.walk(node)}
    return not read.isdisjoint(_LENGTHS)


def _varies(statement: ast.Assign, loop: ast.AST) -> bool:
    """Return True if the value depends on a variable that is written in the loop, or on a call there."""
    written = {one.id for one in source.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    read = {one.id for one in source.walk(statement.value) if isinstance(one, ast.Name)}
    return not read.isdisjoint(written)


def place_of(statement: ast.stmt, site: Site) -> Site:
    return Site(
        site.path, statement.lineno, statement.col_offset, statement.end_lineno or 0,
        statement.end_col_offset or 0, function=site.function,
    )  # fmt: skip


# --- sums that grow over all runs of the loop ------------------------------------------------------------------------


def _is_kept(name: str, function: ast.AST, loop: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return True if a sum is zero before the loop around its loop, and divided there by the total of one run."""
    outer: ast.AST = parents[loop]
    while not isinstance(outer, _LOOPS):
        if outer is function or outer not in parents:
            return False
        outer = parents[outer]
    inside = set(source.walk(loop))
    stored = [one for one in source.walk(outer) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    if any(one.id == name and one not in inside for one in stored) or not _is_zero_before(name, function, outer):
        return False
    if sum(one.id == name for one in stored) != 1:
        return False
    end = getattr(loop, "end_lineno", 0)
    ratios = [
        node
        for node in source.walk(outer)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _holds(node.left, name)
    ]
    return bool(ratios) and all(
        node.lineno > end and not _is_conditional(node, outer, parents) and _is_total(node.right, outer, inside)
        for node in ratios
    )


def _is_conditional(node: ast.AST, outer: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while node is not outer:
        if isinstance(node, ast.If | ast.IfExp | ast.Try | ast.For | ast.AsyncFor | ast.While):
            return True
        node = parents[node]
    return False


def _is_total(node: ast.expr, outer: ast.AST, inside: set[ast.AST]) -> bool:
    """Return True if a divisor is the total of one run of a loop: constant in the outer one, or set to zero there."""
    for name in _names([node]):
        writes = [
            one
            for one in source.walk(outer)
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
        ]
        if not writes:
            continue
        resets = [
            one
            for one in source.walk(outer)
            if isinstance(one, ast.Assign) and one not in inside and name in _names(one.targets) and _is_zero(one, name)
        ]
        if not resets:
            return False
    return True


# --- batches of a loop -------------------------------------------------------------------------------------------


def rows_of(loop: ast.For) -> Callable[[ast.expr], bool]:
    """Return a function that tells whether an index selects the next batch of a whole set in each pass of a loop."""
    target, items = loop.target, loop.iter
    if isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.func.id == "enumerate":
        target = target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else target
        items = items.args[0] if items.args else items
    if not isinstance(target, ast.Name) or not isinstance(items, ast.Call):
        return lambda index: False
    name, called = target.id, items.func
    if isinstance(called, ast.Attribute) and called.attr in _SPLITS:
        return lambda index: isinstance(index, ast.Name) and index.id == name
    if not (isinstance(called, ast.Name) and called.id == "range"):
        return lambda index: False
    step = ast.unparse(items.args[2]) if len(items.args) == _WITH_STEP else ""
    return lambda index: isinstance(index, ast.Slice) and index.step is None and _is_next(index, name, step)


def _is_next(index: ast.Slice, name: str, step: str) -> bool:
    """Return True for ``i:i + step``; without a step of the range, for ``i * size:(i + 1) * size``."""
    lower, upper = index.lower, index.upper
    if isinstance(upper, ast.Call) and isinstance(upper.func, ast.Name) and upper.func.id == "min":
        upper = next((one for one in upper.args if isinstance(one, ast.BinOp)), None)
    if lower is None or not isinstance(upper, ast.BinOp):
        return False
    if step:
        size = ast.parse(step, mode="eval").body
        return ast.unparse(lower) == name and ast.unparse(upper) in _both(ast.Name(name), ast.Add(), size)
    if not isinstance(lower, ast.BinOp):
        return False
    after = ast.BinOp(ast.Name(name), ast.Add(), ast.Constant(1))
    return any(
        ast.unparse(lower) in _both(ast.Name(name), ast.Mult(), size)
        and ast.unparse(upper) in (*_both(after, ast.Mult(), size), *_both(lower, ast.Add(), size))
        for size in (lower.left, lower.right)
    )


def _both(one: ast.expr, operator: ast.operator, other: ast.expr) -> tuple[str, str]:
    """Return the source of an operation on two operands, in both orders."""
    return ast.unparse(ast.BinOp(one, operator, other)), ast.unparse(ast.BinOp(other, operator, one))
