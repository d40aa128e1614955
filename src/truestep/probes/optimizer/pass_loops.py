"""Read the source around the construction of an optimizer: a pass over slices of the data, or a loop over folds."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from truestep import source
from truestep.events import Site

_SLICES = ("split", "chunk", "batch", "batches", "array_split")
_WITH_STEP = 3
"""Arguments of ``range`` with a step, as in ``range(0, len(x), batch_size)``."""
_FOLDS = frozenset((
    "KFold", "StratifiedKFold", "GroupKFold", "StratifiedGroupKFold", "RepeatedKFold", "RepeatedStratifiedKFold",
    "LeaveOneOut", "LeaveOneGroupOut", "LeavePGroupsOut", "ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit",
))  # fmt: skip
"""Splits in which the held-out samples of a fold are in the training of others; not those in the order of time."""
_Loop = ast.For | ast.AsyncFor


@functools.lru_cache(maxsize=64)
def lasts_one_pass(places: tuple[Site, ...]) -> bool:
    """Return True if the innermost loop around a line has a loop over slices in its body, after the line.

    An optimizer that is built there lasts for one pass over the data; with ``range(steps)`` in its place, it may be
    one for each of several tasks. A function without a loop around the line counts, if a loop over epochs calls it.
    """
    site = places[0]
    tree = source.parsed(site.path)
    around = [] if tree is None else _loops_around(tree, site)
    if around:
        body = around[-1].body
    elif tree is not None and len(places) > 1 and _is_in_epochs(places[1]):
        functions = [node for node in source.walk(tree) if isinstance(node, ast.FunctionDef) and _has(node, site)]
        body = functions[-1].body if functions else []
    else:
        return False
    after = [node for node in body if isinstance(node, _Loop) and node.lineno > site.line]
    return len(after) == 1 and _is_over_slices(after[0].iter)


def _loops_around(tree: ast.AST, site: Site) -> list[_Loop]:
    return [node for node in source.walk(tree) if isinstance(node, _Loop) and _has(node, site)]


def _has(node: ast.For | ast.AsyncFor | ast.FunctionDef, site: Site) -> bool:
    return node.body[0].lineno <= site.line <= (node.end_lineno or 0)


def _is_in_epochs(call: Site) -> bool:
    """Return True if a call is in a loop that counts epochs, or whose counter the call does not get."""
    tree = source.parsed(call.path)
    around = [] if tree is None else _loops_around(tree, call)
    if not around or "range" not in ast.unparse(around[-1].iter):
        return False
    counters = {one.id for one in source.walk(around[-1].target) if isinstance(one, ast.Name)}
    calls = [one for one in source.walk(around[-1]) if isinstance(one, ast.Call) and one.lineno == call.line]
    given = {one.id for each in calls for one in source.walk(each) if isinstance(one, ast.Name)}
    return any("epoch" in counter for counter in counters) or counters.isdisjoint(given)


def _is_over_slices(iterable: ast.expr) -> bool:
    for node in source.walk(iterable):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _SLICES or (name == "range" and len(node.args) == _WITH_STEP):
                return True
    return False


@functools.lru_cache(maxsize=64)
def is_in_folds(places: tuple[Site, ...]) -> bool:
    """Return True if the innermost loop around the user's places on the stack goes over folds of a cross-validation."""
    for place in places:
        tree = source.parsed(place.path)
        around = [
            node
            for node in (source.walk(tree) if tree is not None else ())
            if isinstance(node, ast.While | _Loop) and node.body[0].lineno <= place.line <= (node.end_lineno or 0)
        ]
        if around and tree is not None:
            inner = max(around, key=lambda node: node.lineno)
            return isinstance(inner, _Loop) and _is_over_folds(inner.iter, tree)
    return False


def _is_over_folds(iterable: ast.expr, tree: ast.AST, deep: int = 3) -> bool:
    """Return True if an expression has a call of `split` of such a class, also through variables of the file."""
    for node in source.walk(iterable):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            if any(_is_splitter(value) for value in (node.func.value, *_values(node.func.value, tree))):
                return True
        elif isinstance(node, ast.Name) and deep:
            if any(_is_over_folds(value, tree, deep - 1) for value in _values(node, tree)):
                return True
    return False


def _values(name: ast.expr, tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the values that a file assigns to a variable or an attribute of this name."""
    wanted = getattr(name, "attr", getattr(name, "id", None))
    for node in source.walk(tree):
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _assigned(target, node.value)]
            yield from (
                value for one, value in pairs if wanted and getattr(one, "attr", getattr(one, "id", "")) == wanted
            )


def _assigned(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _is_splitter(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", "")) in _FOLDS
