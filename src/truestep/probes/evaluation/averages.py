"""Averages over a loop of evaluation: the sums of its passes, and their divisors behind it.

A sum grows by a mean, a sum or a number in each pass. Behind the loop it is divided by a number that grows by the rows
of a batch, by its elements or by one, or by the length of the data or of the loader.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from truestep import source
from truestep.probes.evaluation.values import Made, Value
from truestep.syntax import counts_samples

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_MOST_COLUMNS = 4
_DRAWN = frozenset({"sampler", "batch_sampler", None})
"""Arguments of a loader that give it another number of batches."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(slots=True)
class Sums:
    """Variables that one pass of a loop adds to.

    Attributes:
        made: variable to the value that was added, if it was made from the result.
        numbers: variable to the number that was added.
        mixed: variables that the pass adds to in several ways.
    """

    made: dict[str, Made] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    mixed: set[str] = field(default_factory=set)

    def grew(self, name: str, value: Value | None) -> None:
        """Enter that a variable grew by a value; None for an unknown one."""
        if name in self.made or name in self.numbers or value is None:
            self.mixed.add(name)
        elif value.made is not None and value.made.unit:
            self.made[name] = value.made
        elif type(value.it) in (int, float):
            self.numbers[name] = value.it
        else:
            self.mixed.add(name)


def added(node: ast.AST) -> tuple[str, ast.expr] | None:
    """Return the variable and the value of a statement that adds to it; None for others."""
    match node:
        case ast.AugAssign(target=ast.Name() | ast.Attribute() as target, op=ast.Add(), value=value):
            return ast.unparse(target), value
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=value)
        ):
            return (name, value) if left == name else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
            return name, value
    return None


def leaves_first(loop: ast.For) -> ast.stmt | None:
    """Return the `return` or `break` that ends the first pass of a loop that adds to sums; None without one."""
    body = loop.body
    while len(body) == 1 and isinstance(body[0], ast.With):
        body = body[0].body
    last = body[-1]
    if not isinstance(last, ast.Return | ast.Break) or loop.orelse:
        return None
    nodes = [node for statement in body for node in ast.walk(statement)]
    if any(isinstance(node, ast.Continue | ast.Yield | ast.YieldFrom | ast.FunctionDef) for node in nodes):
        return None
    return last if any(added(node) is not None for node in nodes) else None


def divisions(loop: ast.For, parents: dict[ast.AST, ast.AST]) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """Yield the divisions of sums behind a loop: variable, divisor and the whole expression, up to new values of it."""
    written: set[str] = set()
    node: ast.AST = loop
    while node in parents and not isinstance(node, _FUNCTIONS):
        up = parents[node]
        for name in ("body", "orelse", "finalbody"):
            block = getattr(up, name, None)
            if isinstance(block, list) and node in block:
                for statement in block[block.index(node) + 1 :]:
                    yield from _divisions(statement, written)
        if isinstance(up, _LOOPS):
            return
        node = up


def _divisions(statement: ast.stmt, written: set[str]) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    if isinstance(statement, (*_LOOPS, *_FUNCTIONS)):
        written.update(_stored(statement))
        return
    divided = ""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Div):
        divided = _plain(statement.target)
        if divided and divided not in written:
            yield divided, statement.value, statement.value
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            name = _plain(node.left)
            if name and name not in written and not _names(node.right) & written:
                yield name, node.right, node
    written.update(_stored(statement))


def _plain(node: ast.expr) -> str:
    """Return the variable of an expression that is its value, also as a number: ``total.item()``; "" for others."""
    match node:
        case ast.Name() | ast.Attribute(value=ast.Name()):
            return ast.unparse(node)
        case ast.Call(func=ast.Name(id="float" | "int" | "sum"), args=[inner], keywords=[]):
            return _plain(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="item" | "float" | "double" | "cpu"), args=[], keywords=[]):
            return _plain(inner)
        case (
            ast.BinOp(left=ast.Constant(), op=ast.Mult(), right=inner)
            | ast.BinOp(left=inner, op=ast.Mult(), right=ast.Constant())
        ):
            return _plain(inner)
    return ""


def _names(node: ast.AST, *kinds: type) -> set[str]:
    """Return the variables and attributes of an expression, or those that are stored."""
    places = (one for one in source.walk(node) if isinstance(one, ast.Name | ast.Attribute))
    return {ast.unparse(one) for one in places if not kinds or isinstance(one.ctx, kinds)}


def _stored(statement: ast.AST) -> set[str]:
    return _names(statement, ast.Store)


def divisor_of(
    node: ast.expr,
    loop: ast.For,
    sums: Sums,
    rows: int,
    elements: int,
    known: Callable[[ast.AST], Value | None],
    torch: Any,
) -> str:
    """Return the unit of a divisor: "batches", "rows" (or parts of a batch), "elements", "samples" (of all), or "".

    It is "tensors" for the number of tensors in a tuple or a list that holds the data, such as inputs and labels.

    Args:
        node: the divisor.
        loop: the loop before it.
        sums: the variables that one pass of the loop adds to.
        rows: number of rows of the result in that pass.
        elements: number of its elements.
        known: returns the value of an expression.
        torch: the module.
    """
    name = _plain(node)
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and name not in sums.numbers and counts_samples(node):
        if ast.unparse(node) in ast.unparse(loop.iter):
            return ""
        held = known(node)
        if held is None or type(held.it) is not int or not held.it > rows > 1:
            return ""
        return "batches" if held.it == _number_of_passes(loop.iter, known, torch) else "samples"
    if name:
        number = sums.numbers.get(name)
        if number is None or name in sums.mixed or rows < 2:
            return ""
        if number == 1:
            return "batches"
        if number == elements:
            return "elements"
        return "rows" if type(number) is int and 1 < number <= max(rows, elements) else ""
    match node:
        case ast.BinOp(left=ast.Call() as inner, op=ast.Sub(), right=ast.Constant(value=1)):
            return divisor_of(inner, loop, sums, rows, elements, known, torch)
        case ast.Call(func=ast.Name(id="len"), args=[inner], keywords=[]):
            value = known(inner)
            held = None if value is None else value.it
            data, loader = torch.utils.data.Dataset, torch.utils.data.DataLoader
            if not isinstance(held, list | tuple | range | data | loader | torch.Tensor) or not hasattr(
                held, "__len__"
            ):
                return ""
            if isinstance(held, loader) or _passes(loop.iter, inner, known, len(held)):
                return "batches" if rows > 1 else ""
            if rows > 1 and _are_columns(held, torch.Tensor):
                return "tensors"
            samples = isinstance(held, data | torch.Tensor) or _steps(loop.iter, inner, known)
            if not samples or not 1 < rows <= len(held):
                return ""
            return "batches" if len(held) == _number_of_passes(loop.iter, known, torch) else "samples"
    return ""


def _are_columns(held: Any, tensor: Any) -> bool:
    """Return True if a tuple or a list holds a few tensors with a row for each of more samples."""
    if type(held) not in (tuple, list) or not 1 < len(held) <= _MOST_COLUMNS:
        return False
    if not all(isinstance(one, tensor) and one.dim() > 0 for one in held):
        return False
    rows = {int(one.shape[0]) for one in held}
    return len(rows) == 1 and rows.pop() > _MOST_COLUMNS * len(held)


def _passes(items: ast.expr, data: ast.expr, known: Callable[[ast.AST], Value | None], length: int) -> bool:
    """Return True if a loop has a pass for each item of some data: ``for x in data``, ``for i in range(len(data))``."""
    text = ast.unparse(data)
    match items:
        case ast.Call(func=ast.Name(id="range"), args=[end] | [_, end]):
            return text in ast.unparse(end)
        case ast.Call(func=ast.Name(id="enumerate" | "tqdm" | "list" | "iter"), args=[inner, *_]):
            return _passes(inner, data, known, length)
    value = known(items)
    parts = value.it if value is not None else None
    return ast.unparse(items) == text or (type(parts) is tuple and len(parts) == length)


def _number_of_passes(items: ast.expr, known: Callable[[ast.AST], Value | None], torch: Any) -> int | None:
    """Return the number of passes of a loop over known items; None if it is unknown.

    Of loaders, only those are known that give one sample at a time, such as a document, with all of its rows.
    """
    match items:
        case ast.Call(func=ast.Name(id="enumerate" | "tqdm" | "list" | "iter"), args=[inner, *_]):
            return _number_of_passes(inner, known, torch)
        case ast.Call(func=ast.Name(id="DataLoader") | ast.Attribute(attr="DataLoader"), args=[data, *more]):
            given = {one.arg: one.value for one in items.keywords}
            size = known(given.get("batch_size", more[0] if more else ast.Constant(1)))
            items = data if size is not None and size.it in (None, 1) and not given.keys() & _DRAWN else items
    value = known(items)
    held: Any = None if value is None else value.it
    if type(held) is torch.utils.data.DataLoader:
        drawn: Any = held.sampler if held.batch_size == 1 or held.batch_sampler is None else None
        held = range(len(drawn)) if type(drawn).__module__ == "torch.utils.data.sampler" else None
    sized = isinstance(held, tuple | list | range | torch.utils.data.Dataset) and hasattr(held, "__len__")
    return len(held) if sized else None


def _steps(items: ast.expr, data: ast.expr, known: Callable[[ast.AST], Value | None]) -> bool:
    """Return True if a loop has a pass for several items of some data: ``for i in range(0, len(data), size)``."""
    match items:
        case ast.Call(func=ast.Name(id="range"), args=[_, end, step]):
            size = known(step)
            several = size is not None and type(size.it) is int and size.it > 1
            return several and ast.unparse(end) == f"len({ast.unparse(data)})"
    return False


def wrong_average(made: Made, divisor: str) -> str:
    """Return the mistake of a sum that is divided by such a divisor; "" for a sound average."""
    if made.unit in ("mean", "root") and divisor in ("rows", "elements", "samples"):
        return "means"
    if made.unit == "sum" and made.kind == "right" and divisor == "batches":
        return "counts"
    if made.unit == "sum" and divisor == "tensors":
        return "tensors"
    return ""
