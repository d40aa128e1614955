"""Read the source after a call of a model: is its result compared with targets, read as a number, or passed on?"""

from __future__ import annotations

import ast
import functools
import re
from typing import NamedTuple

from truestep import source
from truestep.events import Site

_MOST_NODES = 400
_FACTS = frozenset({"shape", "dtype", "device", "ndim", "requires_grad", "grad_fn", "size", "dim", "numel"})
"""Attributes of a result that do not depend on its values."""
_DISCRETE = frozenset({
    "argmax", "argmin", "argsort", "detach", "long", "int", "bool", "sign", "gt", "lt", "ge", "le", "round", "indices",
    "greater", "less", "multinomial", "isnan", "isfinite",
})  # fmt: skip
"""Operations with results that have no gradient."""
_NUMBERS = frozenset({"item", "tolist", "numpy", "float", "int", "print", "str", "repr", "bool", "isclose", "allclose"})
_EQUAL = frozenset({"eq", "ne", "not_equal", "equal"})
_AS = frozenset({"expand_as", "reshape_as", "type_as", "view_as"})
_KEEPING = frozenset({"append", "extend", "insert", "add"})
_PLAIN = frozenset({
    "zip", "enumerate", "sum", "list", "tuple", "map", "max", "min", "abs", "sorted", "reversed", "set", "dict", "next",
    "iter",
})  # fmt: skip
_LIBRARIES = frozenset({"torch", "F", "nn", "functional", "np", "numpy", "math"})
_LOSS = re.compile(r"loss|crit|entropy|mse|nll|bce|kl_div|likelihood|objective|(^|_)(l1|l2|ce|huber)($|_)")
_METRIC = re.compile(r"acc|metric|score|auc|iou|dice|psnr|ssim|error|rmse|mae|wer|bleu|confusion|(^|_)f1|correct")
_CHOSEN = re.compile(r"\b(argmax|max|topk|argsort|round)\b")
_MOVING = frozenset({"to", "cuda", "cpu", "float", "double"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
_THROUGH = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred, ast.GeneratorExp,
    ast.keyword, ast.ListComp, ast.DictComp, ast.SetComp, ast.Slice,
)  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class Use(NamedTuple):
    """The use of a result."""

    how: str = ""
    """"compared" (for equality, with values that are not chosen in the same way; or by a metric), "loss" (a loss of it
    is read as a number), "read" (as a number), or "" for all other uses."""
    only: bool = False
    """True if nothing else gets it: no backward pass can follow."""


class _Value(NamedTuple):
    """A value that depends on the result."""

    node: ast.AST
    loss: bool = False
    plain: bool = False
    """True if it has no gradient."""


@functools.lru_cache(maxsize=512)
def use_of(site: Site) -> Use:
    """Return the use of the result of the call at a site, in its function."""
    found = call_at(site)
    if found is None:
        return Use()
    call, parents = found
    ends = _Flow(parents).ends(call)
    how = next((end for end in ("compared", "loss", "read") if end in ends), "")
    return Use(how, bool(how) and ends.isdisjoint({"differentiated", "passed on"}))


@functools.lru_cache(maxsize=512)
def given_at(site: Site) -> str:
    """Return the variable that is the first argument of the call at a site; empty for any other expression.

    It is "*" for a variable of the loop around the call, or a part of one, that the loop sets to no other value.
    """
    found = call_at(site)
    first = found[0].args[0] if found is not None and found[0].args else None
    if found is None or not isinstance(first, ast.Name | ast.Attribute | ast.Subscript):
        return ""
    base: ast.expr = first
    while isinstance(base, ast.Subscript | ast.Attribute):
        base = base.value
    node: ast.AST = found[0]
    while isinstance(base, ast.Name) and node in found[1] and not isinstance(node, _SCOPES):
        node = found[1][node]
        if isinstance(node, ast.For) and _is_named(node.target, base.id):
            others = [one for one in source.walk(node) if isinstance(one, ast.Assign) and _is_named(one, base.id)]
            return "*" if all(_is_moved(one.value, base.id) for one in others) else ""
    return ast.unparse(first)


def _is_named(node: ast.AST, name: str) -> bool:
    """Return True if a target, or the targets of an assignment, have a variable of this name."""
    targets = node.targets if isinstance(node, ast.Assign) else [node]
    return any(isinstance(one, ast.Name) and one.id == name for target in targets for one in ast.walk(target))


def _is_moved(value: ast.expr, name: str) -> bool:
    """Return True for the same values of a variable, on another device, in another type or in a ``Variable``."""
    if isinstance(value, ast.Tuple):
        return any(_is_moved(one, name) for one in value.elts)
    if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "Variable" and value.args:
        return ast.unparse(value.args[0]) == name or _is_moved(value.args[0], name)
    moving = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVING
    return moving and ast.unparse(value.func.value) == name  # type: ignore[attr-defined]


def call_at(site: Site) -> tuple[ast.Call, dict[ast.AST, ast.AST]] | None:
    """Return the call at a site, and the node around each node of its file; None if the source is unknown."""
    tree = source.parsed(site.path) if site.column >= 0 else None
    parents = {} if tree is None else source.parents(tree)
    call = next((node for node in parents if isinstance(node, ast.Call) and _is_at(node, site)), None)
    return None if call is None else (call, parents)


def loop_at(path: str, line: int) -> tuple[ast.For, dict[ast.AST, ast.AST]] | None:
    """Return the loop with its items at a line, and the node around each node of its file; None if there is none."""
    tree = source.parsed(path)
    parents = {} if tree is None else source.parents(tree)
    loops = [one for one in parents if isinstance(one, ast.For) and one.lineno <= line <= (one.iter.end_lineno or 0)]
    return (loops[-1], parents) if loops and not loops[-1].orelse else None


def _is_at(node: ast.Call, site: Site) -> bool:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == (
        site.line, site.column, site.end_line, site.end_column,
    )  # fmt: skip


def _given_for_shape(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a call such as ``target.view_as(prediction)`` that give a shape or type to its result."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _AS:
        return [part for given in node.args for part in source.walk(given)]
    return []


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


class _Flow:
    """Follows a value through the expressions and variables of one function."""

    def __init__(self, parents: dict[ast.AST, ast.AST]) -> None:
        self._parents = parents
        self._ends: set[str] = set()
        self._waiting: list[_Value] = []

    def ends(self, call: ast.Call) -> set[str]:
        """Return the places in which the result of a call ends."""
        self._waiting = [_Value(call)]
        seen: set[_Value] = set()
        while self._waiting and len(seen) < _MOST_NODES:
            value = self._waiting.pop()
            if value not in seen:
                seen.add(value)
                self._follow(value)
        return self._ends | ({"passed on"} if self._waiting else set())

    def _follow(self, value: _Value) -> None:
        node, up = value.node, self._parents[value.node]
        if isinstance(up, _THROUGH):
            self._on(value, up)
        elif isinstance(up, ast.Attribute):
            self._attribute(value, up)
        elif isinstance(up, ast.Subscript):
            self._subscript(value, up)
        elif isinstance(up, ast.Compare):
            self._compare(value, up)
        elif isinstance(up, ast.Call):
            self._argument(value, up)
        elif isinstance(up, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
            targets = up.targets if isinstance(up, ast.Assign) else [up.target]
            for target in targets:
                self._named(value, target, up)
            if isinstance(up, ast.NamedExpr):
                self._on(value, up)
        elif isinstance(up, ast.comprehension):
            self._named(value, up.target, self._parents[up])
        elif isinstance(up, ast.JoinedStr | ast.FormattedValue | ast.If | ast.While | ast.Assert):
            self._read(value)
        elif isinstance(up, ast.IfExp):
            self._read(value) if up.test is node else self._on(value, up)
        elif not isinstance(up, ast.Expr):
            self._pass_on(value)

    def _on(self, value: _Value, node: ast.AST, *, plain: bool = False) -> None:
        self._waiting.append(value._replace(node=node, plain=value.plain or plain))

    def _read(self, value: _Value) -> None:
        self._ends.add("loss" if value.loss else "read")

    def _pass_on(self, value: _Value) -> None:
        if not value.plain:
            self._ends.add("passed on")

    def _attribute(self, value: _Value, up: ast.Attribute) -> None:
        if up.attr in _FACTS or not isinstance(up.ctx, ast.Load):
            return
        call = self._parents[up]
        if not (isinstance(call, ast.Call) and call.func is up):
            self._on(value, up, plain=up.attr in _DISCRETE)
        elif up.attr in _KEEPING | {"update"}:
            return  # a container that holds the result gets another one
        elif up.attr == "backward":
            self._ends.add("differentiated")
        elif up.attr in _EQUAL:
            self._equal(value, call.args)
        else:
            if up.attr in _NUMBERS:
                self._read(value)
            self._on(value, call, plain=up.attr in _DISCRETE | _NUMBERS)

    def _subscript(self, value: _Value, up: ast.Subscript) -> None:
        if up.value is value.node:
            if isinstance(up.ctx, ast.Load):
                self._on(value, up)
        elif isinstance(up.ctx, ast.Store) and isinstance(up.slice, ast.Tuple):
            self._ends.add("compared")  # a count in a table of predictions and targets
        elif isinstance(up.ctx, ast.Load):
            self._on(value, up, plain=True)

    def _compare(self, value: _Value, up: ast.Compare) -> None:
        if all(isinstance(op, ast.Eq | ast.NotEq) for op in up.ops):
            self._equal(value, [side for side in (up.left, *up.comparators) if side is not value.node])
        else:
            self._on(value, up, plain=True)

    def _equal(self, value: _Value, others: list[ast.expr]) -> None:
        """Enter a comparison for equality: with targets, if the other side is neither a constant nor a prediction."""
        for other in others:
            shaped = {node for call in source.walk(other) for node in _given_for_shape(call)}
            written = [node for node in source.walk(other) if isinstance(node, ast.Name) and node not in shaped]
            texts = [ast.unparse(other), *(text for name in written for text in self._definitions(name))]
            if written and not any(_CHOSEN.search(text) for text in texts):
                self._ends.add("compared")
            else:
                self._read(value)

    def _definitions(self, name: ast.Name) -> list[str]:
        scope = self._scope(name)
        return [
            ast.unparse(node.value)
            for node in source.walk(scope)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
        ]

    def _argument(self, value: _Value, call: ast.Call) -> None:
        """Enter a call that gets the value as an argument, or as a keyword's value."""
        func = call.func
        if func is value.node:
            self._on(value, call)
            self._pass_on(value)
            return
        written = ast.unparse(func)
        name, root = written.rpartition(".")[2], written.partition(".")[0]
        several = len(call.args) + len(call.keywords) > 1 or any(isinstance(arg, ast.Starred) for arg in call.args)
        kept = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and name in _KEEPING
        if kept and isinstance(func, ast.Attribute):
            self._named(value, func.value, call)
        elif name in _AS:
            return  # it gives a shape or a type only
        elif name in _EQUAL:
            self._equal(value, [arg for arg in call.args if arg is not value.node])
        elif name in _NUMBERS:
            self._read(value)
            if name != "print":
                self._on(value, call, plain=True)
        elif name == "backward":
            self._ends.add("differentiated")
        elif _LOSS.search(name.lower()):
            self._on(value._replace(loss=True), call)
        elif several and (_METRIC.search(written.lower()) or name == "update"):
            self._ends.add("compared")
            self._on(value, call)
        else:
            if name not in _PLAIN and root not in _LIBRARIES:
                self._pass_on(value)
            self._on(value, call, plain=name in _DISCRETE)

    def _named(self, value: _Value, target: ast.AST, after: ast.AST) -> None:
        """Follow the variables that get the value, up to their next assignment."""
        if isinstance(target, ast.Tuple | ast.List | ast.Starred):
            for element in ast.iter_child_nodes(target):
                if isinstance(element, ast.expr):
                    self._named(value, element, after)
            return
        while isinstance(target, ast.Subscript):
            target = target.value
        if not isinstance(target, ast.Name):
            self._pass_on(value)
            return
        value = value._replace(loss=value.loss or bool(_LOSS.search(target.id.lower())))
        inside = isinstance(after, _COMPREHENSIONS)
        scope = after if inside else self._scope(target)
        begun = _position(after) if inside else _end(after.iter if isinstance(after, ast.For) else after)
        same = [node for node in source.walk(scope) if isinstance(node, ast.Name) and node.id == target.id]
        stores = [
            self._written(node)
            for node in same
            if isinstance(node.ctx, ast.Store)
            and _position(node) > begun
            and node is not target
            and not isinstance(self._parents[node], ast.AugAssign)
        ]
        until = min(stores, default=(1 << 30, 0))
        for node in same:
            if isinstance(node.ctx, ast.Load) and begun <= _position(node) <= until:
                self._waiting.append(value._replace(node=node))

    def _written(self, name: ast.Name) -> tuple[int, int]:
        """Return the place from which a variable has another value: the end of an assignment, which reads it before."""
        node: ast.AST = name
        while isinstance(node, ast.Name | ast.Tuple | ast.List | ast.Starred):
            node = self._parents[node]
        return _end(node) if isinstance(node, ast.Assign | ast.AnnAssign) else _position(name)

    def _scope(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, _SCOPES):
            node = self._parents[node]
        return node
