"""Terms of a loss that functions of the file compute from choices, such as ``argmax`` or ``out > 0.5``.

The functions are read as if their code stood at the place of the call: each name is followed to the expressions that
it is assigned, and each parameter to the argument of the call. A term is read as a whole: it has a gradient if one
name that has one is read outside of a choice.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.backward.loss_terms.loss_source import Cut, Term, is_discrete, loss_at, read_names

_DEEPEST = 6
"""Calls, and assignments of names, that are followed."""
_MOST_READS = 400
_BUILTINS = frozenset(dir(builtins))
_PAIRS = ("max", "min", "topk", "sort", "kthvalue", "mode", "median")
"""Operations that return values, and indices without a gradient."""
_OPENS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class _Value(NamedTuple):
    """An expression that a name is assigned."""

    value: ast.expr
    begins: tuple[int, int]
    blocks: tuple[int, ...]
    """The statements around it, such as loops and conditions."""
    replaces: bool
    """Whether the name has no value of earlier assignments any more."""


@dataclass(slots=True, eq=False)
class _Scope:
    """The code of a function, with the arguments of its call."""

    body: ast.AST
    assigned: dict[str, list[_Value]] = field(default_factory=dict)
    blocks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The blocks around each name that is read, by the id of its node."""
    loops: set[int] = field(default_factory=set)
    arguments: dict[str, tuple[ast.expr, _Scope]] = field(default_factory=dict)
    defaults: frozenset[str] = frozenset()
    """Parameters without an argument."""
    depth: int = 0

    def __post_init__(self) -> None:
        _fill(self)

    def values(self, name: ast.Name) -> tuple[list[ast.expr], bool]:
        """Return the expressions that a name may stand for, and True if it may stand for an argument as well."""
        known = self.assigned.get(name.id, [])
        at, around = (name.lineno, name.col_offset), self.blocks.get(id(name), ())
        before = [one for one in known if _end(one.value) <= at and one.begins < at]
        last = next((one for one in reversed(before) if one.replaces and one.blocks == around[: len(one.blocks)]), None)
        if last is None:
            return [one.value for one in known], True
        inner = [block for block in around if block in self.loops and block not in last.blocks]
        carried = [one for one in known if one not in before and inner and inner[0] in one.blocks]
        return [one.value for one in (*before[before.index(last) :], *carried)], False


@dataclass(slots=True)
class _Reads:
    """The names that an expression is computed from: of the frame of the backward pass, or of the module."""

    plain: set[str] = field(default_factory=set)
    chosen: list[tuple[ast.expr, set[str], _Scope]] = field(default_factory=list)
    """The comparisons and choices, with the names in them."""
    unknown: bool = False
    """Whether some code cannot be followed."""
    seen: set[tuple[int, int, int]] = field(default_factory=set)
    count: int = 0


@functools.lru_cache(maxsize=256)
def discrete_terms(site: Site) -> tuple[Term, ...]:
    """Return the terms of the sum that a backward pass starts from that functions of the file compute from choices."""
    tree = source.parsed(site.path) if site.column >= 0 else None
    found = loss_at(tree, site) if tree is not None else None
    return tuple(_terms(tree, site, *found)) if tree is not None and found is not None else ()


def _terms(tree: ast.Module, site: Site, body: ast.AST, loss: ast.expr) -> Iterator[Term]:
    reader = _Follower(tree)
    terms = list(reader.terms(loss, _Scope(body), set()))
    for term, scope in terms if len(terms) > 1 else ():
        reads = _Reads()
        reader.read(term, scope, reads, chosen=None)
        if reads.unknown or not any(inner.depth for *_, inner in reads.chosen):
            continue
        cuts = tuple(
            Cut(_place(node, inner, site), ast.unparse(node), tuple(sorted(names)))
            for node, names, inner in reads.chosen
        )
        names = tuple(sorted({name for cut in cuts for name in cut.names}))
        yield Term(cuts[0].place, cuts[0].text, "", names, (), (), others=tuple(sorted(reads.plain)), cuts=cuts)


class _Follower:
    """Follows names and calls in one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._functions: dict[str, list[ast.FunctionDef]] = {}
        for node in source.walk(tree):
            if isinstance(node, ast.FunctionDef):
                self._functions.setdefault(node.name, []).append(node)
        self._classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self._made = dict(_instances(tree))

    def terms(self, node: ast.expr, scope: _Scope, seen: set[tuple[int, str]]) -> Iterator[tuple[ast.expr, _Scope]]:
        """Yield the terms of a sum, through names, factors without calls, and functions that return a sum."""
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                yield from self.terms(node.left, scope, seen)
                yield from self.terms(node.right, scope, seen)
                return
            case ast.BinOp(op=ast.Div(), left=left):
                yield from self.terms(left, scope, seen)
                return
            case ast.Name(id=name) if (id(scope), name) not in seen:
                values, _ = scope.values(node)
                if values:
                    for value in values:
                        yield from self.terms(value, scope, seen | {(id(scope), name)})
                    return
            case ast.Call() if (inner := self._entered(node, scope)) is not None:
                results = _results(inner.body)
                if len(results) == 1 and (isinstance(results[0], ast.BinOp | ast.Name | ast.Call)):
                    found = list(self.terms(results[0], inner, seen))
                    if len(found) > 1 and not _is_constant(found[0][0]):
                        yield from found
                        return
        yield node, scope

    def read(self, node: ast.AST, scope: _Scope, reads: _Reads, chosen: set[str] | None) -> None:
        """Add the names that an expression is computed from.

        Args:
            chosen: collects the names inside a choice; None outside of one.
        """
        reads.count += 1
        if reads.count > _MOST_READS:
            reads.unknown = True
            return
        if chosen is None and isinstance(node, ast.expr) and _is_choice(node):
            names: set[str] = set()
            for child in ast.iter_child_nodes(node):
                self.read(child, scope, reads, names)
            reads.chosen.append((node, names, scope))
        elif isinstance(node, ast.Name):
            self._name(node, scope, reads, chosen)
        elif isinstance(node, ast.Call) and (inner := self._entered(node, scope)) is not None:
            results = _results(inner.body)
            reads.unknown |= not results
            for result in results:
                self.read(result, inner, reads, chosen)
        elif isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield):
            reads.unknown = True
        else:
            for child in ast.iter_child_nodes(node):
                self.read(child, scope, reads, chosen)

    def _name(self, node: ast.Name, scope: _Scope, reads: _Reads, chosen: set[str] | None) -> None:
        values, passed = scope.values(node)
        if not scope.depth:  # the frame has the values of other names
            values = [one for one in values if any(map(_is_choice, _expressions(one)))]
        for value in values:
            key = id(scope), id(value), id(chosen)
            if key not in reads.seen:
                reads.seen.add(key)
                self.read(value, scope, reads, chosen)
        if node.id in scope.arguments and passed:
            argument, outer = scope.arguments[node.id]
            self.read(argument, outer, reads, chosen)
        elif not values and node.id not in (*scope.defaults, *self._classes) and node.id not in _BUILTINS:
            (reads.plain if chosen is None else chosen).add(node.id)

    def _entered(self, call: ast.Call, scope: _Scope) -> _Scope | None:
        """Return the function of the file that a call runs, with its arguments; None for any other call."""
        function = self._function(call.func)
        if function is None or scope.depth >= _DEEPEST:
            return None
        given = function.args
        if given.vararg or given.kwarg or any(isinstance(one, ast.Starred) for one in call.args):
            return None
        if any(one.arg is None for one in call.keywords):
            return None
        names = [one.arg for one in (*given.posonlyargs, *given.args)]
        arguments: dict[str, tuple[ast.expr, _Scope]] = {}
        if names[:1] == ["self"]:
            names = names[1:]
            bound = (
                call.func.value
                if isinstance(call.func, ast.Attribute) and call.func.attr == function.name
                else call.func
            )
            arguments["self"] = bound, scope
        arguments |= {name: (value, scope) for name, value in zip(names, call.args, strict=False)}
        arguments |= {one.arg: (one.value, scope) for one in call.keywords if one.arg is not None}
        every = {*names, *(one.arg for one in given.kwonlyargs)}
        defaults = frozenset(every - arguments.keys())
        return _Scope(function, arguments=arguments, defaults=defaults, depth=scope.depth + 1)

    def _function(self, called: ast.expr) -> ast.FunctionDef | None:
        """Return the one function that a name or an attribute stands for, or the ``forward`` of a criterion."""
        if isinstance(called, ast.Call):
            made = called.func.id if isinstance(called.func, ast.Name) else ""
        else:
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if isinstance(called, ast.Attribute) and not isinstance(called.value, ast.Name):
                return None
            found = self._functions.get(name, [])
            if len(found) == 1 and name not in ("forward", "__call__"):
                own = [one.arg for one in found[0].args.args[:1]] == ["self"]
                return found[0] if own == isinstance(called, ast.Attribute) else None
            made = self._made.get(name, "")
        held = self._classes.get(made)
        methods = [one for one in held.body if isinstance(one, ast.FunctionDef)] if held is not None else []
        return next((one for one in methods if one.name in ("forward", "__call__") and _is_loss(one)), None)


def _is_loss(function: ast.FunctionDef) -> bool:
    """Return True for a function of two arguments or more beside ``self``: a model has one."""
    return len(function.args.args) > 2


def _instances(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names and attributes that are assigned an object, each with the name of its class."""
    for node in source.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            target = node.targets[0]
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if name:
                yield name, node.value.func.id


def _fill(scope: _Scope) -> None:
    """Note every expression that each name of a function is assigned, also in parts, and the blocks around names."""

    def add(target: ast.expr, value: ast.expr, statement: ast.AST, around: tuple[int, ...], replaces: bool) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else ()
            for at, one in enumerate(target.elts):
                part = parts[at] if len(parts) == len(target.elts) else _part(value, at)
                add(one, part, statement, around, replaces)
            return
        while isinstance(target, ast.Subscript | ast.Starred):
            target, replaces = target.value, False
        if isinstance(target, ast.Name):
            begins = getattr(statement, "lineno", value.lineno), getattr(statement, "col_offset", value.col_offset)
            scope.assigned.setdefault(target.id, []).append(_Value(value, begins, around, replaces))

    waiting: list[tuple[ast.AST, tuple[int, ...]]] = [(one, ()) for one in ast.iter_child_nodes(scope.body)]
    while waiting:
        node, around = waiting.pop(0)
        match node:
            case ast.Assign():
                for target in node.targets:
                    add(target, node.value, node, around, True)
            case ast.AnnAssign(value=ast.expr() as value):
                add(node.target, value, node, around, True)
            case ast.AugAssign():
                add(node.target, node.value, node, around, False)
            case ast.For() | ast.comprehension():
                add(node.target, node.iter, node, around, False)
            case ast.Name():
                scope.blocks[id(node)] = around
        if isinstance(node, ast.For | ast.While):
            scope.loops.add(id(node))
        inside = (*around, id(node)) if isinstance(node, ast.For | ast.While | ast.If | ast.Try) else around
        if not isinstance(node, _OPENS):
            waiting += [(one, inside) for one in ast.iter_child_nodes(node)]
    for values in scope.assigned.values():
        values.sort(key=lambda one: one.begins)


def _part(value: ast.expr, at: int) -> ast.expr:
    """Return an expression for one of several results."""
    return ast.copy_location(ast.Subscript(value, ast.copy_location(ast.Constant(at), value), ast.Load()), value)


def _is_choice(node: ast.expr) -> bool:
    """Return True for a comparison, and for indices of the largest or smallest values."""
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Attribute(attr=name)), slice=ast.Constant(value=1)):
            return name in _PAIRS
        case ast.Attribute(value=ast.Call(func=ast.Attribute(attr=name)), attr="indices"):
            return name in _PAIRS
    return is_discrete(node)


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    return (one for one in source.walk(node) if isinstance(one, ast.expr))


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _results(body: ast.AST) -> list[ast.expr]:
    """Return the expressions that a function returns."""
    found: list[ast.expr] = []
    waiting = list(ast.iter_child_nodes(body))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        if not isinstance(node, _OPENS):
            waiting += ast.iter_child_nodes(node)
    return found


def _is_constant(node: ast.expr) -> bool:
    return not read_names(node)


def _place(node: ast.expr, scope: _Scope, site: Site) -> Site:
    name = scope.body.name if isinstance(scope.body, ast.FunctionDef) else site.function
    end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return Site(site.path, node.lineno, node.col_offset, *end, function=name)
