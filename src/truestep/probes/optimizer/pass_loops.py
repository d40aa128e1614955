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
_BOTH = 2
"""Parts of a fold."""
_DEEPEST = 3
"""Assignments from one variable to the next."""
_Loop = ast.For | ast.AsyncFor


@functools.lru_cache(maxsize=64)
def lasts_one_pass(places: tuple[Site, ...]) -> bool:
    """Return True if the innermost loop around a line has a loop over slices in its body, after the line.

    An optimizer that is built there lasts for one pass over the data; with ``range(steps)`` in its place, it may be
    one for each of several tasks. A function without a loop around the line counts, if a loop over epochs calls it,
    and one with the loop over slices that a loop over epochs calls after the line.
    Data that the model itself makes before each pass, such as targets by its results, are new tasks, too.
    """
    site = places[0]
    tree = source.parsed(site.path)
    around = [] if tree is None else _loops_around(tree, site)
    nodes = () if tree is None else source.walk(tree)
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef) and _has(node, site)]
    if tree is None or not (around or functions):
        return False
    body = around[-1].body if around else functions[-1].body
    after = [node for node in body if isinstance(node, _Loop) and node.lineno > site.line]
    if around and not after:
        return _is_in_called(tree, around[-1], site)
    if len(after) != 1 or not _is_over_slices(after[0].iter):
        return False
    models = _models(tree, site)
    if around:
        return not _makes(around[-1], _sliced(after[0]), models, after[0])
    return len(places) > 1 and _is_in_epochs(places[1], functions[-1], models)


def _loops_around(tree: ast.AST, site: Site) -> list[_Loop]:
    return [node for node in source.walk(tree) if isinstance(node, _Loop) and _has(node, site)]


def _has(node: ast.For | ast.AsyncFor | ast.FunctionDef, site: Site) -> bool:
    return node.body[0].lineno <= site.line <= (node.end_lineno or 0)


def _is_in_epochs(call: Site, function: ast.FunctionDef, models: set[str]) -> bool:
    """Return True if the call of a function is in a loop that counts epochs, or whose counter the call does not get."""
    tree = source.parsed(call.path)
    around = [] if tree is None else _loops_around(tree, call)
    if not around or "range" not in ast.unparse(around[-1].iter):
        return False
    counters = _names(around[-1].target)
    calls = [one for one in source.walk(around[-1]) if isinstance(one, ast.Call) and one.lineno == call.line]
    given = {name for each in calls for name in _names(each)}
    names = [one.arg for one in function.args.args]
    for one in calls:
        if isinstance(one.func, ast.Attribute):
            models = models | {ast.unparse(one.func.value)}
        if _called(one) == function.name:
            passed = zip(names[len(names) and names[0] == "self" :], one.args, strict=False)
            models = models | {ast.unparse(value) for name, value in passed if name in models}
    if _makes(around[-1], given, models - {"self"}, None):
        return False
    return any("epoch" in counter for counter in counters) or counters.isdisjoint(given)


def _is_in_called(tree: ast.AST, epochs: _Loop, site: Site) -> bool:
    """Return True if one loop, in a function that a loop over epochs calls after the line, is over slices."""
    functions = {one.name: one for one in source.walk(tree) if isinstance(one, ast.FunctionDef)}
    after = [part for part in epochs.body if part.lineno > site.line]
    calls = [one for part in after for one in source.walk(part) if isinstance(one, ast.Call)]
    passes = [
        (call, function, loop)
        for call in calls
        if (function := functions.get(_called(call))) is not None
        for loop in function.body
        if isinstance(loop, _Loop) and _is_over_slices(loop.iter)
    ]
    if len(passes) != 1:
        return False
    call, function, loop = passes[0]
    place = Site(site.path, call.lineno, call.col_offset)
    models = _models(tree, site)
    read = {name for part in function.body for name in _names(part)}
    if not (counters := _names(epochs.target)).isdisjoint(read) and not any("epoch" in one for one in counters):
        return False  # another stage
    return _is_in_epochs(place, function, models) and not _makes(function, _sliced(loop), models, loop)


def _models(tree: ast.AST, site: Site) -> set[str]:
    """Return the objects with the parameters of an optimizer, as text."""
    return {
        ast.unparse(node.value)
        for node in source.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "parameters" and node.lineno == site.line
    }


def _sliced(loop: _Loop) -> set[str]:
    """Return the variables that a loop over slices takes the samples from."""
    nodes = [one for part in loop.body for one in source.walk(part) if isinstance(one, ast.Subscript)]
    parts = [
        one.value.id for one in nodes if isinstance(one.value, ast.Name) and not isinstance(one.slice, ast.Constant)
    ]
    return {*_names(loop.iter), *parts}


def _makes(loop: _Loop | ast.FunctionDef, names: set[str], models: set[str], without: _Loop | None) -> bool:
    """Return True if the body of a loop, without one in it, gives one of some variables a value by a model."""
    left = {id(one) for one in source.walk(without)} if without is not None else set()
    assigned = [one for one in source.walk(loop) if isinstance(one, ast.Assign) and id(one) not in left]
    found = set(models)
    for _ in range(_DEEPEST):
        for one in assigned:
            read = [node for node in source.walk(one.value) if isinstance(node, ast.Name | ast.Attribute)]
            if any(getattr(node, "attr", "") == "parameters" for node in read):
                continue
            if any(ast.unparse(node) in found for node in read):
                found |= {name for target in one.targets for name in _names(target)}
    return not names.isdisjoint(found - models)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in source.walk(node) if isinstance(one, ast.Name)}


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_over_slices(iterable: ast.expr) -> bool:
    for node in source.walk(iterable):
        name = _called(node)
        if name in _SLICES or (name == "range" and isinstance(node, ast.Call) and len(node.args) == _WITH_STEP):
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
            return isinstance(inner, _Loop) and _is_over_folds(inner.iter, tree) and _reads_both(inner)
    return False


def _reads_both(loop: _Loop) -> bool:
    """Return True if a loop over folds reads both parts of them, or other variables; else it only cuts the data."""
    target: ast.expr = loop.target
    while isinstance(target, ast.Tuple):
        inner = next((one for one in target.elts if isinstance(one, ast.Tuple)), None)
        if inner is None:
            break
        target = inner
    direct = isinstance(loop.iter, ast.Name) or _called(loop.iter) == "split"
    if not isinstance(target, ast.Tuple) or not (direct or target is not loop.target):
        return True  # a counter and a fold
    parts = {one.id for one in target.elts if isinstance(one, ast.Name)}
    return len(parts) != _BOTH or parts <= {one for part in loop.body for one in _names(part)}


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
    return _called(value) in _FOLDS
