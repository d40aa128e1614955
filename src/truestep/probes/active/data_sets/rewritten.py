"""Random changes in place of a variable that is a view of stored samples: noise and masks that pile up.

A change of the stored values is not enough, since a memory or a cache changes them on purpose. A copy of the data set
is read too and must change as well, and a statement must change a local variable in place by random values. A data
set that also assigns to a part of its attributes, as `self.images[index] = image`, means it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.probes.active import restored_states
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused, copy_of, mind
from truestep.probes.unread.statements import scope_of
from truestep.probes.variables.arrays import arrays_of, as_tensor, shape_of

_SEEDS = (21, 22, 23, 24, 25, 21)
"""The first one again: values that were drawn again are those of the first read."""
_SAMPLES = 8
_LEAST_CHANGED = 2
_DRAWS = re.compile(r"^(?:rand\w*|random\w*|normal_?|uniform_?|bernoulli_?|choices?|sample|shuffle|getrandbits|gauss)$")
"""Last parts of the names of functions that draw random numbers."""
_VIEWS = frozenset({
    "view", "view_as", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "movedim", "swapaxes", "t", "detach",
    "narrow", "select", "numpy", "from_numpy", "as_tensor", "asarray", "flatten", "ravel", "expand_dims",
})  # fmt: skip
_RENEWED = frozenset({
    "copy_", "lerp_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "fill_", "zero_",
})  # fmt: skip
"""Methods that replace the values of an array, or move them towards others."""


def changed_by_itself(data: Any, scene: Scene) -> bool:
    """Return True if reads of a sample change the arrays of a copy of a data set more and more.

    A cache changes at the first read only, and values that are drawn again come back with the random state.

    Raises:
        Refused: the data set cannot be copied, or the copy cannot be read.
    """
    piled = 0
    with restored_states.kept(scene.torch):
        copy = copy_of(data, scene)
        for index in range(min(_SAMPLES, len(copy))):
            states = []
            for number in _SEEDS:
                mind(scene)
                restored_states.seed(scene.torch, number)
                try:
                    copy[index]
                except Exception as error:
                    raise Refused(f"a copy of it raised {type(error).__name__}") from None
                states.append(_rows(copy, index, scene))
            piled += not _same(states[0], states[-1])
    return piled >= _LEAST_CHANGED


def _rows(data: Any, index: int, scene: Scene) -> list[Any]:
    """Return copies of the row of a sample in the arrays of a data set, also below subsets."""
    while type(data).__name__ == "Subset" and "dataset" in vars(data):
        index, data = int(vars(data)["indices"][index]), vars(data)["dataset"]
    held = [one.value for one in arrays_of(scene, data)]
    rows = [as_tensor(scene, value[index : index + 1]) for value in held if shape_of(scene.torch, value)]
    return [row.clone() for row in rows if row is not None]


def _same(first: list[Any], second: list[Any]) -> bool:
    pairs = zip(first, second, strict=True) if len(first) == len(second) else ()
    return all(one.shape == other.shape and bool((one == other).all()) for one, other in pairs)


def drawn_into(codes: list[CodeType]) -> Site | None:
    """Return the statement in place that changes a local variable of a function by random values; None without one."""
    scopes = [(code, scope) for code in codes if (scope := scope_of(code)) is not None]
    if any(_stores(scope) for _, scope in scopes):
        return None
    for code, scope in scopes:
        for _, site in random_writes(code, scope):
            return site
    return None


def random_writes(code: CodeType, scope: ast.AST) -> Iterator[tuple[str, Site]]:
    """Yield the local variables that a function, or a file, changes in place by random values, with the places."""
    made: dict[str, list[ast.expr]] = {}
    changes: dict[str, list[ast.AST]] = {}
    for node in source.walk(scope):
        for target, value in bound(node):
            made.setdefault(target, []).append(value)
        if name := _changed(node):
            changes.setdefault(name, []).append(node)
    for name, nodes in changes.items():
        first = next((one for one in nodes if _is_random(one, made)), None)
        if first is None or _is_renewed(name, nodes, made):
            continue
        line = getattr(first, "lineno", 0)
        given = name in code.co_varnames[: code.co_argcount]
        before = [value for value in made.get(name, []) if value.lineno < line]
        if not given and not _is_read_behind(name, nodes, scope):
            continue  # the change of the array is all that it is for: a state that moves on
        if (before or given) and all(map(_is_view, before)):
            places = (getattr(first, part) for part in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
            yield name, Site(code.co_filename, *places)


def _is_read_behind(name: str, changes: list[ast.AST], scope: ast.AST) -> bool:
    """Return True if a statement after the first one of some changes reads a variable for something else."""
    changing = {id(part) for one in changes for part in ast.walk(one)}
    line = min(getattr(one, "lineno", 0) for one in changes)
    return any(
        isinstance(node, ast.Name) and node.id == name and node.lineno >= line and id(node) not in changing
        for node in source.walk(scope)
        if isinstance(getattr(node, "ctx", None), ast.Load)
    )


def is_labelled(name: str, scope: ast.AST) -> bool:
    """Return True if a variable is a part of an array, beside the same part of another one that is not changed."""
    made = [pair for node in source.walk(scope) for pair in bound(node) if isinstance(pair[1], ast.Subscript)]
    parts = {ast.unparse(value.slice) for target, value in made if target == name and isinstance(value, ast.Subscript)}
    beside = {
        target
        for target, value in made
        if target != name and isinstance(value, ast.Subscript) and ast.unparse(value.slice) in parts
    }
    return bool(beside - {_changed(node) for node in source.walk(scope)})


def bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variables that an assignment or a loop over parts of arrays binds, with their values."""
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Tuple):
        if getattr(node.iter.func, "id", "") == "zip":
            for one, array in zip(node.target.elts, node.iter.args, strict=False):
                cut = array.func if isinstance(array, ast.Call) else None
                if isinstance(one, ast.Name) and isinstance(cut, ast.Attribute) and cut.attr in ("split", "chunk"):
                    yield one.id, ast.copy_location(ast.Subscript(cut.value, ast.Name("zip"), ast.Load()), array)
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple | ast.List):
            known = isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts)
            for place, one in enumerate(target.elts):
                if isinstance(one, ast.Name):
                    yield one.id, node.value.elts[place] if known else node.value  # type: ignore[attr-defined]


def _stores(scope: ast.AST) -> bool:
    """Return True if a function writes to a part of an attribute: `self.images[index] += noise`."""
    for node in source.walk(scope):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        )
        if any(isinstance(one, ast.Subscript) and isinstance(_base(one), ast.Attribute) for one in targets):
            return True
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr.endswith("_") and not called.attr.endswith("__"):
            if isinstance(_base(called.value), ast.Attribute):
                return True
    return False


def _base(node: ast.AST) -> ast.AST:
    """Return the object below parts, `x` of `x[0][1:]`, and calls in place, `x` of `x.mul_(2)`."""
    while isinstance(node, ast.Subscript) or _in_place(node):
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    return node


def _in_place(node: ast.AST) -> bool:
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return name.endswith("_") and not name.endswith("__")


def _changed(node: ast.AST) -> str:
    """Return the variable that a statement changes in place; empty for another one."""
    target: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        target = _base(node.target)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        target = _base(node.targets[0])
    elif isinstance(node, ast.Expr) and _in_place(node.value):
        target = _base(node.value)
    return target.id if isinstance(target, ast.Name) else ""


def _is_random(node: ast.AST, made: dict[str, list[ast.expr]]) -> bool:
    """Return True if a statement draws random numbers, or reads a variable that was made of some."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - {_changed(node)}
    return _draws(node) or any(_draws(value) for name in names for value in made.get(name, []))


def _draws(node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            called = one.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if _DRAWS.match(name) or ".random." in f".{ast.unparse(called)}.":
                return True
    return False


def _is_renewed(name: str, nodes: list[ast.AST], made: dict[str, list[ast.expr]]) -> bool:
    """Return True if statements move a variable towards new values, give it such, or follow a gradient."""
    fixed, added = False, False
    for node in nodes:
        called: ast.AST = node.value if isinstance(node, ast.Expr) else node
        operator = node.op if isinstance(node, ast.AugAssign) else None
        scaled = isinstance(operator, ast.Mult | ast.Div) and not _is_random(node, made)
        added |= isinstance(operator, ast.Add | ast.Sub)
        while isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute):
            method = called.func.attr
            if method in _RENEWED:
                return True
            scaled |= method in ("mul_", "div_") and not any(map(_draws, called.args))
            added |= method in ("add_", "sub_")
            called = called.func.value
        fixed |= scaled
        if "grad" in ast.unparse(node) or _fills(node):
            return True
    return fixed and added


def _slice(node: ast.AST) -> ast.AST | None:
    return node.slice if isinstance(node, ast.Subscript) else None


def _fills(node: ast.AST) -> bool:
    """Return True if a statement gives all elements of a variable other values, as `x[:] = y` does."""
    target = _slice(node.targets[0]) if isinstance(node, ast.Assign) else None
    return isinstance(target, ast.Slice) and target.lower is None and target.upper is None


def _is_view(node: ast.AST) -> bool:
    """Return True if an expression can be a view of stored samples, and False if it is certainly a new tensor."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            called = node.func
            if not isinstance(called, ast.Attribute) or called.attr not in _VIEWS:
                return _in_place(node) or (isinstance(called, ast.Attribute) and "transform" in called.attr)
            node = node.args[0] if called.attr in ("from_numpy", "as_tensor", "asarray") else called.value
        else:
            return isinstance(node, ast.Attribute | ast.Name | ast.Tuple)
