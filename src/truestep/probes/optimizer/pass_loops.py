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
def lasts_one_pass(site: Site) -> bool:
    """Return True if the innermost loop around a line has a loop over slices in its body, after the line.

    An optimizer that is built there lasts for one pass over the data; with ``range(steps)`` in its place, it may be
    one for each of several tasks.
    """
    tree = source.parsed(site.path)
    around = [
        node
        for node in (source.walk(tree) if tree is not None else ())
        if isinstance(node, _Loop) and node.body[0].lineno <= site.line <= (node.end_lineno or 0)
    ]
    if not around:
        return False
    after = [node for node in around[-1].body if isinstance(node, _Loop) and node.lineno > site.line]
    return len(after) == 1 and _is_over_slices(after[0].iter)


def _is_over_slices(iterable: ast.expr) -> bool:
    for node in source.walk(iterable):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _SLICES or (name == "range" and len(node.args) == _WITH_STEP):
                return True
    return False


@functools.lru_cache(maxsize=64)
def is_in_folds(places: tuple[Site, ...]) -> bool:
    """Return True if a loop around one of the user's places on the stack goes over the folds of a cross-validation."""
    return any(_is_over_folds(loop.iter, tree) for place in places for tree, loop in _loops_around(place))


def _loops_around(site: Site) -> Iterator[tuple[ast.AST, _Loop]]:
    tree = source.parsed(site.path)
    for node in source.walk(tree) if tree is not None else ():
        if tree is not None and isinstance(node, _Loop) and node.body[0].lineno <= site.line <= (node.end_lineno or 0):
            yield tree, node


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
    """Yield what a file assigns to a variable or an attribute of this name."""
    wanted = getattr(name, "attr", getattr(name, "id", None))
    for node in source.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for one, value in pairs:
                if wanted is not None and getattr(one, "attr", getattr(one, "id", "")) == wanted:
                    yield value


def _is_splitter(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", "")) in _FOLDS
