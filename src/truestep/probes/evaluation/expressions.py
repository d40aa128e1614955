"""Values of expressions, on the variables of a frame and the detached result of a model.

Expressions are repeated if their operations are known to write nothing. Functions of the user are entered. Attributes
are read from the dict of an object, so that no property runs. The value of everything else is unknown.
"""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from truestep.probes.evaluation.functions import (
    ORDERED,
    PLAIN,
    SCORES,
    criterion,
    definition_of,
    function_of,
    is_number,
    is_plain,
    items_of,
    length_of,
    plain_of,
    variables_of,
)
from truestep.probes.evaluation.libraries import joined, of_math, of_numpy, scaling_of, scored
from truestep.probes.evaluation.rows import selected, viewed
from truestep.probes.evaluation.units import REGRESSION, measured
from truestep.probes.evaluation.values import (
    LOSSES,
    NOWHERE,
    OPERATIONS,
    Made,
    Unknown,
    Value,
    after_first,
    applied,
    in_a_row,
    marked,
)
from truestep.seams.code.functions import code_of

if TYPE_CHECKING:
    from truestep.probes.evaluation.statements import Statements

_DEEPEST = 3
_MOST_ITEMS = 6
"""Items of a loop that is repeated."""
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}  # fmt: skip
_NAMES: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.BitAnd: "and", ast.Pow: "pow",
}  # fmt: skip
_COMPARED: dict[type, str] = {ast.Eq: "eq", ast.NotEq: "ne", ast.Gt: "gt", ast.Lt: "lt", ast.GtE: "ge", ast.LtE: "le"}
_LEAST = 8
"""Numbers of a tensor that is compared with itself."""


class Expressions(ABC):
    """The expressions of one function, with its variables."""

    def __init__(
        self, run: Statements, names: dict[str, Any], path: str, known: dict[ast.AST, Value], depth: int = 0
    ) -> None:
        self._run = run
        self._torch = run.scene.torch
        self._names = names
        self._path = path
        self._known = known
        self._depth = depth
        self._text = ""
        """Source of the call that is followed: the same call again has the same result, while its names are kept."""
        self._first = names

    @abstractmethod
    def body(self, statements: list[ast.stmt]) -> Value:
        """Repeat the body of a function, and return its value.

        Raises:
            Unknown: it is not known.
        """

    def known(self, node: ast.AST) -> Value | None:
        """Return the value of an expression; None if it is unknown."""
        try:
            return self._value(node)
        except Unknown:
            return None

    def _value(self, node: ast.AST) -> Value:
        if node in self._known:
            return self._known[node]
        match node:
            case ast.Constant(value=constant):
                return Value(constant)
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(self._value(inner), name)
            case ast.Subscript(value=inner, slice=index):
                return self._item(self._value(inner), self._value(index), node)
            case ast.Slice(lower=lower, upper=upper, step=step):
                return Value(slice(*(None if part is None else self._value(part).it for part in (lower, upper, step))))
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                values = [self._value(part) for part in elts]
                made = next((value.made for value in values if value.made is not None), None)
                kind = tuple if isinstance(node, ast.Tuple) else list
                return Value(kind(value if made else value.it for value in values), made)
            case ast.Dict():
                return self._dict(node)
            case ast.UnaryOp(op=ast.USub() | ast.Invert() as op, operand=operand):
                value = self._value(operand)
                return self._apply("neg", operator.neg if isinstance(op, ast.USub) else operator.invert, [value])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                sides = self._both(left, right)
                if isinstance(op, ast.Sub):
                    self._run.judge("sub", sides[0], sides[1], node, self._path)
                    self._same(sides[0], sides[1], left, right, node)
                self._run.paired(sides, node, self._path)
                if isinstance(op, ast.BitAnd | ast.Mult):
                    self._run.masked(sides, node, self._path)
                found = self._apply("", _BINARY[type(op)], sides)
                return self._measure(_NAMES.get(type(op), ""), sides, {}, found, node)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                one, two = self._both(left, right)
                if isinstance(op, ast.Eq):
                    self._same(one, two, left, right, node)
                return self._compared(_COMPARED[type(op)], one, two, node)
            case ast.Call():
                return self._call(node)
            case ast.ListComp(elt=elt, generators=[one]) | ast.GeneratorExp(elt=elt, generators=[one]) if not one.ifs:
                try:
                    self.repeated(one.target, one.iter, lambda: self.known(elt))
                except Unknown:
                    self.known(elt)
                raise Unknown
        for child in ast.iter_child_nodes(node):
            self.known(child)
        raise Unknown

    def _dict(self, node: ast.Dict) -> Value:
        """Return a dict of the entries that are known."""
        entries = zip(node.keys, node.values, strict=True)
        known = [(key.value, self.known(part)) for key, part in entries if isinstance(key, ast.Constant)]
        values = {key: one for key, one in known if one is not None}
        made = next((one.made for one in values.values() if one.made is not None), None)
        return Value({key: one if made else one.it for key, one in values.items()}, made)

    def _measure(self, name: str, values: list[Value], named: dict[str, Value], found: Value, node: ast.expr) -> Value:
        """Set the unit of a value, and hand on the mistake that it shows."""
        before = values[0].made if values else None
        mistake = measured(name, values, named, found, self._run.samples, self._torch)
        mistake = "shares" if in_a_row(name, values, named) else mistake
        after = found.made
        if mistake:
            self._run.mistaken(mistake, node, self._path, before)
        if after is not None and after.pair is not None and after.unit in ("size", "mean", "sum"):
            if before is None or before.unit not in ("size", "mean", "sum"):
                self._run.sized(after, node, self._path)
            if name == "mean" and after.unit == "mean" and after.kind == "right":
                self._run.averaged(after, node, self._path)
        return found

    def _same(self, one: Value, two: Value, left: ast.expr, right: ast.expr, node: ast.expr) -> None:
        """Hand on a comparison of values with themselves: one tensor of classes, or equal ones in the pass before."""
        if (one.made is None) != (two.made is None):
            return
        sides = [one.it, two.it]
        if one.made is not None:
            names = [side.id for side in (left, right) if isinstance(side, ast.Name)]
            sides = [self._first.get(name) for name in names]
        if len(sides) < 2 or not all(self._is_tensor(side) and side.numel() >= _LEAST for side in sides):
            return
        first, second = sides
        found = first is second and not first.is_floating_point()  # a number is compared with itself to find NaN
        if one.made is not None:
            found = first is not second and first.shape == second.shape and bool(self._torch.equal(first, second))
        if found and len(first.unique()) > 1:
            self._run.mistaken("itself", node, self._path)

    def _both(self, left: ast.expr, right: ast.expr) -> list[Value]:
        found = [self.known(left), self.known(right)]
        if found[0] is None or found[1] is None:
            raise Unknown
        return [one for one in found if one is not None]

    @abstractmethod
    def bind(self, target: ast.expr, value: Value | None) -> None:
        """Store the value of a variable."""

    def repeated(self, target: ast.expr, items: ast.expr, body: Callable[[], Value | None]) -> list[Value | None]:
        """Repeat an expression or the statements of a loop, for each of a few known items.

        Raises:
            Unknown: the items are not known, or there are many.
        """
        found = self._value(items)
        if type(found.it) not in (tuple, list) or not 0 < len(found.it) <= _MOST_ITEMS:
            raise Unknown
        values = []
        for item in found.it:
            self.bind(target, wrapped(item, found if found.made is not None else None))
            values.append(body())
        return values

    def _name(self, name: str) -> Value:
        value = self._names.get(name, NOWHERE)
        if value is NOWHERE:
            raise Unknown
        if isinstance(value, Value):
            return value
        if type(value).__module__ == "numpy":
            return Value(plain_of(self._torch, value))
        return Value(value, rows=viewed(value) if self._is_tensor(value) else None)

    def _attribute(self, owner: Value, name: str) -> Value:
        it = owner.it
        if self._is_tensor(it):
            if name in ("data", "T", "mT"):
                return Value(it.detach() if name == "data" else getattr(it, name), owner.made)
            if name in ("shape", "ndim"):
                return Value(getattr(it, name))
            raise Unknown
        if isinstance(it, tuple) and name in ("values", "indices") and len(it) == 2:
            return wrapped(it[name == "indices"], None)
        try:
            return Value(plain_of(self._torch, vars(it)[name]))
        except (TypeError, KeyError):
            raise Unknown from None

    def _item(self, owner: Value, index: Value, node: ast.Subscript) -> Value:
        it, at = owner.it, index.it
        if self._is_tensor(it):
            made = owner.made
            if isinstance(at, tuple):
                at = tuple(part.it if isinstance(part, Value) else part for part in at)
            rows = made is not None and self._is_tensor(at)
            try:
                part = it[at]
                chosen = selected(it, at, self._torch) if made is None else None
            except Exception:
                raise Unknown from None
            if made is None:
                own = index.made is not None and index.made.own == "index" and it.dim() == 1
                return Value(part, Made(own="labels") if own else None, chosen)
            kept = replace(made, numbers=None, labels=None)
            if made.fits(it):
                kept = made.selected(at, self._torch, ast.unparse(node.slice))
            kept = replace(kept, unit="", kind="", pair=None, own="" if after_first(at) else made.own)
            found = Value(part, replace(kept, raw=False, best=False, over="") if rows else kept)
            self._run.scored(kept, None, node, self._path)
            return found
        if type(it) in (tuple, list, dict) or isinstance(it, self._torch.Size):
            try:
                return wrapped(it[at], owner)
            except Exception:
                raise Unknown from None
        raise Unknown

    def _call(self, node: ast.Call) -> Value:
        if self._text and ast.unparse(node) == self._text:
            return next(iter(self._known.values()))
        given = [one for argument in node.args for one in self._argument(argument)]
        named = {one.arg: self.known(one.value) for one in node.keywords}
        owner = self.known(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if None in named:
            raise Unknown
        known = [one for one in (*given, *named.values()) if one is not None]
        if len(known) < len(given) + len(named):
            raise Unknown
        values, keys = known[: len(given)], dict(zip(map(str, named), known[len(given) :], strict=True))
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self._run.paired(values[:2], node, self._path)
        if name in ("zip", "items", "enumerate"):
            return items_of(name, owner, values)
        if owner is not None and self._is_tensor(owner.it):
            if name in ("eq", "ne", "gt", "lt", "ge", "le") and len(values) == 1:
                return self._compared(name, owner, values[0], node)
            if name == "any" and owner.made is not None and owner.made.own == "hits":
                self._run.mistaken("own", node, self._path)
            return self._apply(name, getattr(owner.it, name, None), values, keys, owner, node)
        if owner is not None and len(values) == 1 and (scaling := scaling_of(self._torch, owner.it, name)) is not None:
            return self._apply("", scaling, values)
        function = function_of(self._torch, self._names, node.func, owner, name)
        if (score := scored(function, name, values, keys)) is not None:
            return score
        if function is len and len(values) == 1 and not self._is_tensor(values[0].it):
            return length_of(self._torch, values[0])
        if owner is not None and function is not None and function is of_numpy(self._torch, name):
            name, values = function.__name__, [joined(self._torch, value) for value in values]
        if name in SCORES and len(values) > 1:
            self._compared("eq", values[0], values[1], node)
        if isinstance(function, FunctionType) and self._run.scene.sites.kind(code_of(function)) == 0:
            return self._entered(function, values, keys)
        if name in ("eq", "ne") and len(values) > 1:
            return self._compared(name, values[0], values[1], node)
        if name in ("from_numpy", "as_tensor") and values and self._is_tensor(values[0].it):
            return values[0]  # arrays are tensors here
        if name in ORDERED and len(values) > 1 and values[0].made is not None and values[1].made is None:
            if str(getattr(function, "__module__", "")).startswith("sklearn"):
                self._run.mistaken("swapped", node, self._path)
        if isinstance(function, self._torch.nn.Module):
            function, name, keys = criterion(self._torch, function, keys)
        if name in LOSSES and self._run.scene.coast.on:
            raise Unknown  # a call that repeats one of the program's is not to be taken for it
        if name in REGRESSION and len(values) > 1:
            if not all(self._is_tensor(one.it) for one in values[:2]) or values[0].it.shape != values[1].it.shape:
                raise Unknown  # torch warns of other shapes
        if name in LOSSES and len(values) > 1:
            self._run.judge("loss", values[0], values[1], node, self._path)
        return self._apply(name, function, values, keys, None, node)

    def _argument(self, node: ast.expr) -> list[Value | None]:
        if not isinstance(node, ast.Starred):
            return [self.known(node)]
        many = self.known(node.value)
        if many is None or not isinstance(many.it, tuple | list):
            return [None]
        return [wrapped(part, many) for part in many.it]

    def _apply(
        self,
        name: str,
        function: Any,
        given: list[Value],
        named: dict[str, Value] | None = None,
        owner: Value | None = None,
        node: ast.expr | None = None,
    ) -> Value:
        """Return the result of a known operation.

        Raises:
            Unknown: the operation is not known.
        """
        values = given if owner is None else [owner, *given]
        if any(isinstance(value.it, ModuleType | FunctionType) for value in values):
            raise Unknown
        if owner is not None:
            if name not in OPERATIONS:
                raise Unknown
            found = applied(
                name,
                lambda it, *rest, **more: getattr(it, name)(*rest, **more),
                values,
                named or {},
                self._run.samples,
                self._torch,
            )
            return found if node is None else self._measure(name, values, named or {}, found, node)
        plain = (
            function is not None
            and any(function is one for one in (PLAIN.get(name), of_math(name)))
            and all(is_plain(value.it) or self._is_tensor(value.it) for value in values)
        )
        if name in ("", "neg"):
            if not all(is_number(value.it) or self._is_tensor(value.it) for value in values):
                raise Unknown
            return applied("", function, values, {}, self._run.samples, self._torch)
        mine = function is not None and function in (
            getattr(self._torch, name, None), getattr(self._torch.nn.functional, name, None)
        )  # fmt: skip
        if not plain and not (mine and name in OPERATIONS):
            raise Unknown
        found = applied(name, function, values, named or {}, self._run.samples, self._torch)
        return found if node is None else self._measure(name, values, named or {}, found, node)

    def _compared(self, name: str, one: Value, two: Value, node: ast.expr) -> Value:
        self._run.judge(name, one, two, node, self._path)
        self._run.paired([one, two], node, self._path)
        found = self._apply("", getattr(operator, name), [one, two])
        made, target = (one.made, two) if one.made is not None else (two.made, one)
        if made is not None and made.own == "labels" and name == "eq" and target.made is None:
            mark = marked(one.it if one.made is not None else two.it, target.it)
            found.made = Made(own="hits") if mark == "hits" else found.made
            if mark == "all":
                self._run.mistaken("own", node, self._path)
        if made is not None and found.made is not None and target.made is None and made.fits(target.it):
            found.made = replace(found.made, labels=target.it)
        return self._measure(name, [one, two], {}, found, node)

    def _entered(self, function: FunctionType, given: list[Value], named: dict[str, Value]) -> Value:
        definition = definition_of(function) if self._depth < _DEEPEST else None
        if definition is None or len(given) > code_of(function).co_argcount:
            raise Unknown
        names = variables_of(function, given, named)
        return type(self)(self._run, names, code_of(function).co_filename, {}, self._depth + 1).body(definition.body)

    def _is_tensor(self, it: Any) -> bool:
        return type(it) in (self._torch.Tensor, self._torch.nn.Parameter)


def wrapped(part: Any, whole: Value | None) -> Value:
    """Return an item of a value; one of a result with several parts is made from it too."""
    return part if isinstance(part, Value) else Value(part, None if whole is None else whole.made)
