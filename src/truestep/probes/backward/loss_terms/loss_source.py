"""Read the source of a loss: the terms of the sum that a backward pass starts from, and where a gradient is cut."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator
from typing import NamedTuple

from truestep import source
from truestep.events import Site

_DEEPEST = 8
_CHAIN = 4
"""Assignments between a term and the comparison that it is computed from."""
_DISCRETE = frozenset({
    "argmax", "argmin", "gt", "ge", "lt", "le", "eq", "ne", "greater", "less", "long", "int", "bool", "multinomial",
    "bernoulli",
})  # fmt: skip
"""Operations with results that have no gradient."""
_METHODS = ("detach", "item")
_WITHOUT_GRADIENTS = ("no_grad", "inference_mode")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Cut(NamedTuple):
    """A comparison or a choice that a term is computed from."""

    place: Site
    text: str
    names: tuple[str, ...]


class Term(NamedTuple):
    """A term of a loss that may have no gradient."""

    place: Site
    """The expression that cuts the gradient, or the call that computes the term."""
    cut: str
    """Text of the cut, such as ".detach()"; empty if unknown."""
    name: str
    """Variable that holds the term; its value decides. Empty if the expression alone decides."""
    names: tuple[str, ...]
    """Names that the term is computed from."""
    modules: tuple[str, ...]
    """Names with parameters that the term is computed from."""
    factors: tuple[str, ...]
    """Names in the factors of the term."""
    others: tuple[str, ...] = ()
    """Names that the term is computed from beside a comparison or a choice, such as ``out > 0.5``."""
    cuts: tuple[Cut, ...] = ()
    """The comparisons and choices."""
    returned: bool = False
    """True for a term in the sum that a function of the file returns: its names have no values any more."""


@functools.lru_cache(maxsize=256)
def terms_of(site: Site) -> tuple[Term, ...]:
    """Return the terms with a cut, or with a variable that may hold a value without a gradient.

    Args:
        site: a call of ``loss.backward()``, or of a function with the loss as its first argument.
    """
    tree = source.parsed(site.path) if site.column >= 0 else None
    if tree is None:
        return ()
    found = loss_at(tree, site)
    return tuple(_Reader(found[0], site, tree).read(found[1])) if found is not None else ()


def loss_at(tree: ast.AST, site: Site) -> tuple[ast.AST, ast.expr] | None:
    """Return the innermost function around a call of ``backward``, and the loss; None without one."""
    scope, call = innermost_call(tree, site)
    loss = _loss(call) if call is not None else None
    return (scope, loss) if loss is not None else None


def innermost_call(tree: ast.AST, site: Site) -> tuple[ast.AST, ast.Call | None]:
    """Return the innermost function around a site, and the call at the site."""
    scope, found = tree, None
    for node in source.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.lineno <= site.line <= (node.end_lineno or 0):
                scope = node  # walked from the outside in
        elif isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (site.line, site.column):
            if (node.end_lineno, node.end_col_offset) == (site.end_line, site.end_column):
                found = node
    return scope, found


def _loss(call: ast.Call) -> ast.expr | None:
    """Return the loss: the receiver of ``backward``, or the first argument."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and not call.args:
        value = call.func.value
        scales = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "scale"
        return value.args[0] if scales and isinstance(value, ast.Call) and value.args else value
    return call.args[0] if call.args else None


class _Reader:
    """Follows the names of terms to their assignments in one function."""

    def __init__(self, scope: ast.AST, site: Site, tree: ast.AST) -> None:
        self._site = site
        self._tree = tree
        self._assigned: dict[str, list[tuple[ast.Assign | ast.AugAssign, bool]]] = {}
        """Assignments of each name in their order, and True for those without gradients."""
        for statement, aside in _statements(scope, False):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(target, ast.Name):
                self._assigned.setdefault(target.id, []).append((statement, aside))

    def read(self, loss: ast.expr) -> Iterator[Term]:
        """Yield the terms that may have no gradient, unless their names are terms as well."""
        operands = list(self._operands(loss, (self._site.line, self._site.column), _DEEPEST))
        for operand, at in operands:
            yield from self._returned(operand, at)
        if len(operands) < 2:
            return
        alone = {operand.id for operand, _ in operands if isinstance(operand, ast.Name)}
        for operand, at in operands:
            term = self._term(operand, at, ())
            if term is not None and alone.isdisjoint(term.names):
                yield term

    def _returned(self, operand: ast.expr, at: tuple[int, int]) -> Iterator[Term]:
        """Yield the terms with a cut in the sum that a function returns, if its name stands for one function.

        Those from choices are left to `discrete_terms`, which knows their arguments.
        """
        latest = self._latest(operand.id, at) if isinstance(operand, ast.Name) else None
        call = latest[0].value if latest is not None and not latest[1] else operand
        while isinstance(call, ast.BinOp) and isinstance(call.op, ast.Mult | ast.Div):
            call = call.left if isinstance(call.left, ast.Call | ast.BinOp) else call.right
        if not isinstance(call, ast.Call):
            return
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        named = [one for one in source.walk(self._tree) if isinstance(one, ast.FunctionDef) and one.name == name]
        last = named[0].body[-1] if len(named) == 1 else None
        if not isinstance(last, ast.Return) or not isinstance(last.value, ast.BinOp):
            return
        inner = _Reader(named[0], dataclasses.replace(self._site, function=name), self._tree)
        operands = list(inner._operands(last.value, (last.lineno, last.col_offset), _DEEPEST))
        own = {one.arg for one in named[0].args.args} | set(inner._assigned)
        for term in (inner._term(node, there, ()) for node, there in operands if len(operands) > 1):
            if term is not None and term.cut and not term.cuts and not own.isdisjoint(term.names):
                yield term._replace(returned=True)

    def _latest(self, name: str, at: tuple[int, int]) -> tuple[ast.Assign | ast.AugAssign, bool] | None:
        before = [one for one in self._assigned.get(name, ()) if _end(one[0]) <= at]
        return max(before, key=lambda one: _end(one[0])) if before else None

    def _operands(self, node: ast.expr, at: tuple[int, int], depth: int) -> Iterator[tuple[ast.expr, tuple[int, int]]]:
        """Yield the operands of a sum, each with the place at which its names are read."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            yield from self._operands(node.left, at, depth)
            yield from self._operands(node.right, at, depth)
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.left, ast.Name | ast.BinOp):
            yield from self._operands(node.left, at, depth)
            return
        latest = self._latest(node.id, at) if isinstance(node, ast.Name) and depth else None
        if latest is not None and isinstance(node, ast.Name) and not latest[1]:
            statement = latest[0]
            begins = (statement.lineno, statement.col_offset)
            if isinstance(statement, ast.AugAssign):
                if isinstance(statement.op, ast.Add | ast.Sub):
                    yield from self._operands(statement.value, begins, depth - 1)
                    yield from self._operands(ast.Name(node.id, ast.Load()), begins, depth - 1)
                    return
            elif isinstance(statement.value, ast.BinOp) and not isinstance(statement.value.op, ast.Mult):
                yield from self._operands(statement.value, begins, depth - 1)
                return
        yield node, at

    def _term(self, node: ast.expr, at: tuple[int, int], factors: tuple[str, ...]) -> Term | None:
        match node:
            case ast.UnaryOp():
                return self._term(node.operand, at, factors)
            case ast.Call(func=ast.Attribute(attr=method, value=inner)) if method in _METHODS:
                return self._made(node, inner, f".{method}()", "", factors)
            case ast.Call() | ast.BinOp() | ast.Name() if (found := self._discrete(node, at, _CHAIN)) is not None:
                places, others = found
                name = node.id if isinstance(node, ast.Name) else ""
                cuts = tuple(Cut(self._where(one), ast.unparse(one), tuple(sorted(read_names(one)))) for one in places)
                names = tuple(sorted({one for cut in cuts for one in cut.names}))
                return Term(
                    cuts[0].place, cuts[0].text, name, names, (), factors, others=tuple(sorted(others)), cuts=cuts
                )
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                left = self._term(node.left, at, (*factors, *read_names(node.right)))
                return left or self._term(node.right, at, (*factors, *read_names(node.left)))
            case ast.Call(func=ast.Name(id="float"), args=[inner]):
                return self._made(node, inner, "float(...)", "", factors)
            case ast.Call(args=[ast.Call(func=ast.Attribute(attr="detach", value=inner)) as first, *others]):
                if not any(isinstance(one, ast.Call) for other in others for one in source.walk(other)):
                    others_read = (name for other in others for name in read_names(other))
                    return self._made(first, inner, ".detach()", "", (*factors, *others_read))
            case ast.Attribute(attr="data", value=inner):
                return self._made(node, inner, ".data", "", factors)
            case ast.Name():
                latest = self._latest(node.id, at)
                if latest is None or isinstance(latest[0], ast.AugAssign):
                    return None
                statement, aside = latest
                if aside:
                    return self._made(statement.value, statement.value, "torch.no_grad()", node.id, factors)
                inside = self._term(statement.value, (statement.lineno, statement.col_offset), factors)
                if inside is not None:
                    return inside._replace(name=node.id)
                if isinstance(statement.value, ast.Call):
                    return self._made(statement.value, statement.value, "", node.id, factors)
        return None

    def _where(self, place: ast.expr) -> Site:
        end_line, end_column = _end(place)
        return Site(self._site.path, place.lineno, place.col_offset, end_line, end_column, function=self._site.function)

    def _discrete(self, node: ast.expr, at: tuple[int, int], depth: int) -> tuple[list[ast.expr], set[str]] | None:
        """Return the comparisons and choices that an expression is computed from, and the names beside them.

        None without one. Names are followed to their assignments.
        """
        places: list[ast.expr] = []
        others: set[str] = set()
        waiting: list[ast.AST] = [node]
        while waiting:
            one = waiting.pop(0)
            if isinstance(one, ast.expr) and is_discrete(one):
                places.append(one)
            elif isinstance(one, ast.Name):
                latest = self._latest(one.id, at) if depth else None
                found = None
                if latest is not None and isinstance(latest[0], ast.Assign) and not latest[1]:
                    begins = (latest[0].lineno, latest[0].col_offset)
                    found = self._discrete(latest[0].value, begins, depth - 1)
                if found is None:
                    others.add(one.id)
                else:
                    places, others = [*places, *found[0]], others | found[1]
            else:
                waiting += ast.iter_child_nodes(one)
        return (places, others) if places else None

    def _made(self, place: ast.expr, inner: ast.expr, cut: str, name: str, factors: tuple[str, ...]) -> Term | None:
        """Return a term; None for a difference, which replaces a value and keeps a gradient on purpose."""
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            return None
        where = self._where(place)
        modules = tuple(
            one.func.value.id if isinstance(one.func.value, ast.Name) else next(iter(read_names(one.func.value)), "")
            for one in source.walk(inner)
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in ("parameters", "named_parameters")
        )
        return Term(where, cut, name, tuple(sorted(read_names(inner))), modules, factors)


def is_discrete(node: ast.expr) -> bool:
    """Return True for a comparison, and for a call of an operation without a gradient."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _DISCRETE
    ordered = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
    return isinstance(node, ast.Compare) and all(isinstance(op, ordered) for op in node.ops)


def _statements(node: ast.AST, aside: bool) -> Iterator[tuple[ast.Assign | ast.AugAssign, bool]]:
    """Yield the assignments of a function, and whether gradients are off there; not those of functions inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign | ast.AugAssign):
            yield child, aside
        elif not isinstance(child, _SCOPES):
            off = isinstance(child, ast.With) and any(
                ast.unparse(item.context_expr).endswith(tuple(f"{name}()" for name in _WITHOUT_GRADIENTS))
                for item in child.items
            )
            yield from _statements(child, aside or off)


def read_names(node: ast.AST) -> set[str]:
    """Return the names below a node."""
    return {one.id for one in source.walk(node) if isinstance(one, ast.Name)}


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
