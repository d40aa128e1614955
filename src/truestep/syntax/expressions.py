"""Expressions of a file: the calls, uses of names and assignments in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Any

from truestep.syntax.names import dotted
from truestep.syntax.places import Binding, Call, Context, Guard, Scope

_WORD = re.compile(r"[a-z]+")
_SIZES = frozenset({"samples", "size", "sizes"})
_DATA = frozenset({"data", "dataset", "datasets", "eval", "set", "test", "train", "val", "valid", "validation"})
_OTHERS = frozenset({"batch", "batches", "step", "steps", "world"})
_WITHOUT_NAMES = {"ctx", "op", "ops", "conversion"}
"""Fields of nodes that hold no expressions."""
_CRITERIA = frozenset({"loss", "mse", "mae", "rmse", "nll", "criterion", "bce"})
"""Last words of the names of loss functions."""
_TURNED = frozenset(
    {"neg", "negative", "negated", "minus", "inverse", "inv", "psnr", "from", "acc", "accuracy", "score"}
)
"""Words of functions with a result that is to be large."""


class Expressions:
    """Reads expressions into the scope that surrounds them; `Reader` reads the statements around them."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, "module", "<module>", None)
        self.scopes = [self.module]
        self.calls: list[Call] = []
        self._order = 0
        self._context = Context(self.module)
        self._statement: ast.stmt = ast.Pass()

    def _guarded(self, guard: Guard) -> Context:
        now = self._context
        return Context(now.scope, now.loop, (*now.guards, guard), now.withs, now.deferred)

    def _parameters(self, scope: Scope, given: ast.arguments) -> None:
        inside = Context(scope)
        for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if one is not None:
                self._note(Binding(one.arg, None, "parameter", one, inside, self._order))

    # Bindings

    def _note(self, binding: Binding) -> None:
        binding.context.scope.bindings.setdefault(binding.key, []).append(binding)

    def _bind(
        self,
        target: ast.expr,
        value: ast.expr,
        node: ast.AST,
        how: str = "=",
        index: tuple[int, ...] = (),
        operator: str = "",
    ) -> None:
        kind = type(target)
        if kind is ast.Tuple or kind is ast.List:
            for number, inner in enumerate(target.elts):  # type: ignore[attr-defined]
                self._bind(inner, value, node, how, (*index, number), operator)
            return
        self._order += 1
        if kind is ast.Subscript:
            self._expression(target.value)  # type: ignore[attr-defined]
            self._expression(target.slice)  # type: ignore[attr-defined]
            key = dotted(target.value) + "[]"  # type: ignore[attr-defined]
        elif kind is ast.Starred:
            key = dotted(target.value)  # type: ignore[attr-defined]
            index = (*index, -1)
        else:
            key = dotted(target)
            if kind is ast.Attribute and not key:
                self._expression(target.value)  # type: ignore[attr-defined]
                key = f"?.{target.attr}"  # type: ignore[attr-defined]
        if key:
            self._note(Binding(key, value, how, node, self._context, self._order, index, operator))  # type: ignore[arg-type]

    # Expressions

    def _expression(self, node: ast.AST) -> None:
        kind = type(node)
        if kind is ast.Name:
            self._load(node.id, node)  # type: ignore[attr-defined]
        elif kind is ast.Constant:
            return
        elif kind is ast.Attribute:
            if key := dotted(node):
                self._load(key, node)
            else:
                self._expression(node.value)  # type: ignore[attr-defined]
        elif kind is ast.Call:
            self._call(node)  # type: ignore[arg-type]
        elif (reader := _READERS.get(kind)) is not None:
            reader(self, node)
        else:
            for name in _parts(kind):
                value = getattr(node, name, None)
                if type(value) is list:
                    for one in value:
                        if one is not None and type(one) is not ast.Constant:
                            self._expression(one)
                elif value is not None:
                    self._expression(value)

    def _named_expression(self, node: ast.NamedExpr) -> None:
        self._expression(node.value)
        self._bind(node.target, node.value, node)

    def _yield(self, node: ast.Yield) -> None:
        if node.value is not None:
            self._context.scope.returns.append((node.value, self._context, self._order))
            self._expression(node.value)

    def _load(self, key: str, node: ast.AST) -> None:
        self._context.scope.loads.setdefault(key, []).append((self._order, node))  # type: ignore[arg-type]

    def _call(self, node: ast.Call) -> None:
        function = node.func
        key, method = "", ""
        if type(function) is ast.Attribute:
            method = function.attr
            key = dotted(function.value)
            if key:
                self._load(key, function.value)
            else:
                self._expression(function.value)
        elif type(function) is ast.Name:
            method = function.id
            self._load(method, function)
        else:
            self._expression(function)
        for argument in node.args:
            if type(argument) is not ast.Constant:
                self._expression(argument)
        for keyword in node.keywords:
            if type(keyword.value) is not ast.Constant:
                self._expression(keyword.value)
        self._order += 1
        call = Call(node, "", method, key, self._context, self._statement, self._order)
        self._context.scope.calls.append(call)
        self.calls.append(call)

    def _lambda(self, node: ast.Lambda) -> None:
        around = self._context.scope
        scope = Scope(node, "lambda", f"{around.name}.<lambda>", around)
        self.scopes.append(scope)
        self._parameters(scope, node.args)
        before, self._context = self._context, Context(scope)
        self._expression(node.body)
        scope.returns.append((node.body, self._context, self._order))
        self._context = before

    def _conditional(self, node: ast.IfExp) -> None:
        self._expression(node.test)
        before = self._context
        for branch, part in enumerate((node.body, node.orelse)):
            self._context = self._guarded(Guard(node, branch))
            self._expression(part)
            self._context = before

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = self._context
        self._context = Context(before.scope, before.loop, before.guards, before.withs, True)
        for part in node.generators:
            self._expression(part.iter)
            self._bind(part.target, part.iter, part, "for")
            for test in part.ifs:
                self._expression(test)
        if isinstance(node, ast.DictComp):
            self._expression(node.key)
            self._expression(node.value)
        else:
            self._expression(node.elt)
        self._context = before


_READERS: dict[type[ast.AST], Callable[[Expressions, Any], None]] = {
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._named_expression,
    ast.IfExp: Expressions._conditional,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.Yield: Expressions._yield,
}


_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}


def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a class of nodes that can hold expressions."""
    known = _PARTS.get(kind)
    if known is None:
        known = _PARTS[kind] = tuple(name for name in kind._fields if name not in _WITHOUT_NAMES)
    return known


def counts_samples(node: ast.expr) -> bool:
    """Return True if the name of a number says that it counts all samples of a part of the data.

    >>> [counts_samples(ast.parse(text, mode="eval").body) for text in ("data_sizes[phase]", "n_samples", "batch_size")]
    [True, False, False]
    """
    words = set(_WORD.findall(ast.unparse(node.value if isinstance(node, ast.Subscript) else node).lower()))
    of_data = "examples" in words or not (words.isdisjoint(_SIZES) or words.isdisjoint(_DATA))
    return of_data and words.isdisjoint(_OTHERS)


def is_made_by_losses(nodes: Iterable[ast.AST], name: str) -> bool:
    """Return True if nothing but results of losses, their sums and means are stored in a variable.

    >>> text = "val = 0.0\\nfor x, y in loader: val += criterion(net(x), y).item() * len(x)\\nval /= len(data)"
    >>> is_made_by_losses(ast.walk(ast.parse(text)), "val"), is_made_by_losses(ast.walk(ast.parse("a = f(x)")), "a")
    (True, False)
    """
    stored = known = made = 0
    for node in nodes:
        match node:
            case ast.Name(id=found, ctx=ast.Store() | ast.Del()) if found == name:
                stored += 1
            case ast.AugAssign(target=ast.Name(id=found), op=ast.Div()) if found == name:
                known += 1
            case (
                ast.Assign(targets=[ast.Name(id=found)], value=value)
                | ast.AugAssign(target=ast.Name(id=found), op=ast.Add(), value=value)
            ) if found == name:
                of_loss = is_result_of_loss(value)
                made += of_loss
                known += of_loss or isinstance(value, ast.Constant)
    return made > 0 and known == stored


def is_result_of_loss(node: ast.expr) -> bool:
    """Return True for the result of a loss function, also as a number, and times or over another number."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item" | "detach" | "cpu"), args=[]):
            return is_result_of_loss(inner)
        case ast.Call(func=ast.Name(id="float"), args=[inner]):
            return is_result_of_loss(inner)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return is_result_of_loss(left) or is_result_of_loss(right)
        case ast.BinOp(left=inner, op=ast.Div()):
            return is_result_of_loss(inner)
        case ast.Call(func=function):
            name = ast.unparse(function).rpartition(".")[2].lower()
            words = _WORD.findall(name.removesuffix("_fn"))
            known = "cross_entropy" in name or (bool(words) and words[-1] in _CRITERIA)
            return known and _TURNED.isdisjoint(words)
    return False
