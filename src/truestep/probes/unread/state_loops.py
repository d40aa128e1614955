"""The source of loops that call a model with a state again and again, and drop the state that each call returns."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.forward.results import call_at

_LOOPS = (ast.For, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_COLLECTING = {"append", "extend", "add", "write", "print"}
_FACTS = {"shape", "size", "dim", "ndim", "dtype", "device", "numel", "element_size", "nbytes"}
"""Attributes of a tensor that do not depend on its values."""
_CLOCKS = {"time", "perf_counter", "perf_counter_ns", "monotonic", "process_time", "synchronize", "timeit", "record"}
_OTHER_SOURCES = ("step", "reset", "rand", "randn", "randn_like", "rand_like", "normal", "rsample")
"""Calls with results that do not follow from their arguments: an environment, or noise."""

_BATCHES = re.compile(r"loader|batch|dataset|(^|_)d[ls]($|\W)")


class StateLoop(NamedTuple):
    """A call in a loop that does not carry the state on.

    Attributes:
        dropped: places of the dropped parts in the result.
        states: variables that are arguments of the call and that the loop does not set, with their position or keyword.
    """

    dropped: tuple[int, ...]
    states: tuple[tuple[str, int | str], ...]


@functools.lru_cache(maxsize=512)
def state_loop(site: Site) -> StateLoop | None:
    """Return the loop around the call at a site if each pass depends on the one before, by its result or by its place.

    Either the next input is made from the result, which the loop collects; or the loop goes over parts of a sequence,
    and only the result of the last one is read.
    """
    found = call_at(site)
    if found is None:
        return None
    call, parents = found
    assigned, loop = parents.get(call), _around(call, parents, _LOOPS)
    if not isinstance(assigned, ast.Assign) or not isinstance(loop, _LOOPS) or len(assigned.targets) != 1:
        return None
    target, scope = assigned.targets[0], _around(loop, parents, _SCOPES)
    if not isinstance(target, ast.Tuple) or scope is None:
        return None
    read = _names(scope, ast.Load)
    parts = [_names(part, ast.Store) for part in target.elts]
    whole = all(isinstance(part, ast.Name | ast.Tuple) for part in target.elts)
    dropped = tuple(place for place, names in enumerate(parts) if names.isdisjoint(read))
    kept = set().union(*(names for place, names in enumerate(parts) if place not in dropped))
    if not whole or not dropped or not kept or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    given: list[tuple[int | str, ast.expr]] = [*enumerate(call.args)]
    given += [(one.arg or "", one.value) for one in call.keywords]
    stored, states = _names(loop, ast.Store), list[tuple[str, int | str]]()
    for place, one in given:
        for part in one.elts if isinstance(one, ast.Tuple) else [one]:
            if isinstance(part, ast.Name) and part.id not in stored:
                states.append((part.id, place))
    inputs = set().union(*(_names(one, ast.Load) for _, one in given))
    if not states or not (_feeds_back(loop, inputs, kept) or _keeps_last(loop, scope, inputs, kept)):
        return None
    return StateLoop(dropped, tuple(states))


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST], kinds: tuple[type, ...]) -> ast.AST | None:
    """Return the innermost node of these kinds around another, in the same scope."""
    inner = parents.get(node)
    while inner is not None and not isinstance(inner, kinds):
        inner = None if isinstance(inner, _SCOPES) else parents.get(inner)
    return inner


def _names(node: ast.AST, how: type[ast.expr_context]) -> set[str]:
    return {one.id for one in source.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, how)}


def values(node: ast.AST) -> set[str]:
    """Return the names of which an expression reads more than a shape.

    >>> sorted(values(ast.parse("f(a, b.shape[0], c.size(0), d.mean())")))
    ['a', 'd', 'f']
    """
    facts = {one.value for one in source.walk(node) if isinstance(one, ast.Attribute) and one.attr in _FACTS}
    names = {one for one in source.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    return {one.id for one in names - facts}


def _feeds_back(loop: ast.For | ast.While, inputs: set[str], kept: set[str]) -> bool:
    """Return True if the next input follows from the result alone, and each pass collects its result."""
    made, fed = set(kept), set[str]()
    assignments = list(_assignments(loop))
    for _ in assignments:
        for names, value in assignments:
            if not made.isdisjoint(values(value)) and not _has_other_source(value):
                made |= names
                fed |= names - _names(value, ast.Load)
    return not inputs.isdisjoint(fed) and any(_collects(node, made) for node in source.walk(loop))


def _assignments(loop: ast.AST) -> Iterator[tuple[set[str], ast.expr]]:
    for node in source.walk(loop):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name | ast.Tuple):
                    yield _names(target, ast.Store), node.value


def _has_other_source(value: ast.expr) -> bool:
    return not _called(value).isdisjoint(_OTHER_SOURCES)


def _called(node: ast.AST) -> set[str]:
    """Return the last names of the functions that a part of the source calls."""
    called = [one.func for one in source.walk(node) if isinstance(one, ast.Call)]
    return {str(getattr(func, "attr", None) or getattr(func, "id", "")) for func in called}


def _collects(node: ast.AST, made: set[str]) -> bool:
    """Return True if a statement keeps a value of each pass."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args):
            values: list[ast.expr] = args if name in _COLLECTING else []
        case ast.Assign(targets=[ast.Subscript()], value=value) | ast.AugAssign(value=value) | ast.Yield(value=value):
            values = [value] if value is not None else []
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            values = [value] if name in _names(value, ast.Load) else []
        case _:
            return False
    return any(not made.isdisjoint(_names(value, ast.Load)) for value in values)


def _keeps_last(loop: ast.For | ast.While, scope: ast.AST, inputs: set[str], kept: set[str]) -> bool:
    """Return True if the input changes from pass to pass, and the results are read behind the loop only.

    Not for inputs of random numbers, and beside a clock: a measurement reads the last result as well.
    """
    if isinstance(loop, ast.For) and _BATCHES.search(ast.unparse(loop.iter)):
        return False
    if not kept.isdisjoint(_names(loop, ast.Load)) or inputs.isdisjoint(_names(loop, ast.Store)):
        return False
    stored = [value for names, value in _assignments(loop) if not inputs.isdisjoint(names)]
    if any(_has_other_source(value) for value in stored) or not _CLOCKS.isdisjoint(_called(scope)):
        return False
    end = loop.end_lineno or loop.lineno
    behind = [one for one in source.walk(scope) if isinstance(one, ast.stmt) and one.lineno > end]
    later = set().union(*(_names(one, ast.Store) for one in behind))
    return not kept.isdisjoint(set().union(*(values(one) for one in behind)) - later)
