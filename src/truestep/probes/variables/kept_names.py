"""The source of variables that keep something in a branch for a new best figure, to be read after it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.context.guards import best_in, names_best_of_self
from truestep.probes.unread.statements import scope_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OF_SHAPE = frozenset({"shape", "size", "numel", "ndim", "dim", "dtype", "device"})
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class KeptName(NamedTuple):
    """A variable that such a branch assigns.

    Attributes:
        node: the variable.
        name: its source.
        best: the variable with the best figure so far.
        figure: the figure that is compared with it.
        greater: whether greater figures lead into the branch.
        strict: whether an equal figure leads past it.
        owner: the class with the variable as an attribute of its objects; "" for a variable of a function or a module.
        loops: first and last lines of the loops around the branch, the innermost one first.
        resets: lines outside of the branch that give the best figure another value.
        bound: whether the variable gets a value other than a constant elsewhere.
        site: the assignment.
        read: a place that reads the variable.
    """

    node: ast.expr
    name: str
    best: ast.expr
    figure: ast.expr
    greater: bool
    strict: bool
    owner: str
    loops: tuple[tuple[int, int], ...]
    resets: tuple[int, ...]
    bound: bool
    site: Site
    read: Site

    def is_within(self, line: int) -> bool:
        """Return True if a loop has both the branch and a line, and goes on with the best figure of earlier passes."""
        loop = next(((first, last) for first, last in self.loops if first <= line <= last), None)
        return loop is not None and not any(loop[0] <= reset <= loop[1] for reset in self.resets)


@functools.lru_cache(maxsize=256)
def kept_names(code: CodeType) -> tuple[KeptName, ...]:
    """Return the variables of a function or a module that such a branch in it assigns and other lines read."""
    tree, scope = source.parsed(code.co_filename), scope_of(code)
    if tree is None or scope is None:
        return ()
    shared = {name for node in inside(scope) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    return tuple(_found(code.co_filename, code.co_name, tree, scope, shared, ""))


@functools.lru_cache(maxsize=256)
def kept_attributes(path: str) -> tuple[KeptName, ...]:
    """Return the attributes that methods in a file assign in such a branch and other lines read."""
    tree = source.parsed(path) if names_best_of_self(path) else None
    found: list[KeptName] = []
    for owner in source.walk(tree) if tree is not None else ():
        for method in owner.body if isinstance(owner, ast.ClassDef) else ():
            if tree is not None and isinstance(owner, ast.ClassDef) and isinstance(method, ast.FunctionDef):
                found += _found(path, method.name, tree, method, set(), owner.name)
    return tuple(found)


def inside(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or a module, without those of functions and classes in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _FUNCTIONS):
            yield from inside(child)


def stored(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield the places that a statement assigns, with the value of each; None for a value from elsewhere."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Tuple | ast.List):
                    values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                    known = len(values) == len(target.elts)
                    yield from zip(target.elts, values if known else [None] * len(target.elts), strict=True)
                else:
                    yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.For(target=target) | ast.AsyncFor(target=target):
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                yield one, None
        case ast.AugAssign(target=target, value=value):
            yield target, value


def is_constant(value: ast.expr | None) -> bool:
    """Return True for a constant, and for an empty list or dict."""
    if isinstance(value, ast.List | ast.Tuple):
        return not value.elts
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def place_of(path: str, node: ast.expr | ast.stmt, function: str = "") -> Site:
    """Return the place of a node of a file."""
    return Site(path, node.lineno, node.col_offset, node.end_lineno or -1, node.end_col_offset or -1, function=function)


def _found(path: str, function: str, tree: ast.AST, scope: ast.AST, shared: set[str], owner: str) -> Iterator[KeptName]:
    parents, within = source.parents(tree), tree if owner else scope
    for node, figure, best, greater, strict, branch in _branches(scope):
        if _is_attribute(best) is not bool(owner):
            continue
        assigned = [one for part in branch for one in (part, *inside(part))]
        lines = branch[0].lineno, branch[-1].end_lineno or 0
        resets = tuple(_bindings(within, root(best), lines, everything=True))
        if not _becomes(assigned, best) or (owner and any(name != "__init__" for name in _methods(tree, resets))):
            continue
        loops = tuple((one.lineno, one.end_lineno or 0) for one in _around(node, parents, _LOOPS))
        for statement in assigned:
            for target, value in stored(statement):
                text = ast.unparse(target)
                if isinstance(statement, ast.AugAssign) or value is None or isinstance(value, ast.Constant):
                    continue
                if text == ast.unparse(best) or _is_attribute(target) is not bool(owner):
                    continue
                if not looks_like_a_copy(value) or _is_handed_on(assigned, target):
                    continue
                whole = bool(owner) or isinstance(scope, ast.Module) or root(target) in shared
                read = _read(tree if whole else scope, target, best, lines, parents, assigned)
                if _is_in_use(within, target, (node.lineno, *loops[:1]), parents):
                    continue
                if _is_undone(node.orelse if branch is node.body else node.body, target):
                    continue
                if _is_taken_over(within, target, loops, lines):
                    continue
                if read is not None and isinstance(statement, ast.stmt):
                    bound = any(True for _ in _bindings(within, root(target), lines))
                    yield KeptName(
                        target, text, best, figure, greater, strict, owner, loops, () if owner else resets, bound,
                        place_of(path, statement, function), place_of(path, read),
                    )  # fmt: skip


def _is_in_use(scope: ast.AST, target: ast.expr, lines: tuple[Any, ...], parents: dict[ast.AST, ast.AST]) -> bool:
    """Return True if a variable is read in the loop above the branch, goes to an optimizer, or gives shapes only.

    It holds the weights that are trained on then, and not a copy of the best ones.
    """
    first, *loop = lines
    reads = [node for node in source.walk(scope) if _is_read_of(node, root(target))]
    above = any(loop and loop[0][0] <= getattr(one, "lineno", 0) < first for one in reads)
    users = [up for one in reads for up in _calls_around(one, parents)]
    trained = any("optim" in ast.unparse(up.func) for up in users)
    attributes = [up.attr if isinstance(up := parents.get(one), ast.Attribute) else "" for one in reads]
    return above or trained or (bool(reads) and all(name in _OF_SHAPE for name in attributes))


def _is_undone(other: list[ast.stmt], target: ast.expr) -> bool:
    """Return True if the way past the branch writes other values to tensors: it undoes a worse trial."""
    nodes = [node for one in other for node in source.walk(one)]
    if any(isinstance(node, ast.expr) and _is_read_of(node, root(target)) for node in nodes):
        return False  # the variable itself, which cannot undo anything
    written = {place.attr for node in nodes for place, _ in stored(node) if isinstance(place, ast.Attribute)}
    called = {node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    return "copy_" in called or "data" in written


def looks_like_a_copy(value: ast.expr) -> bool:
    """Return True for a new list or dict of the same tensors, and for tensors without their graph.

    A plain second name, as of the leader of a population, is often meant.

    >>> texts = "[p.detach() for p in ps]", "dict(ps)", "{k: v.data for k, v in ps.items()}", "w.detach()", "ps"
    >>> [looks_like_a_copy(ast.parse(text, mode="eval").body) for text in texts]
    [True, True, True, True, False]
    """
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(map(looks_like_a_copy, parts))
        case ast.ListComp(elt=inner) | ast.DictComp(value=inner) | ast.GeneratorExp(elt=inner):
            return isinstance(inner, ast.Name) or looks_like_a_copy(inner)
        case ast.Call(func=ast.Name(id="list" | "dict" | "tuple"), args=[ast.expr()]):
            return True
        case ast.Call(func=ast.Attribute(attr="copy")):
            return True
        case ast.Call(func=ast.Attribute(attr="detach"), args=[]) | ast.Attribute(attr="data"):
            return True
    return False


def _is_handed_on(assigned: list[ast.AST], target: ast.expr) -> bool:
    """Return True if the branch passes the variable to a function, such as `torch.save`, or makes copies beside it."""
    calls = [one for one in assigned if isinstance(one, ast.Call)]
    copies = any(isinstance(one.func, ast.Attribute) and one.func.attr in ("clone", "deepcopy") for one in calls)
    given = (part for call in calls for one in (*call.args, *call.keywords) for part in source.walk(one))
    return copies or any(_is_read_of(part, root(target)) for part in given)


def _is_taken_over(
    scope: ast.AST, target: ast.expr, loops: tuple[tuple[int, int], ...], lines: tuple[int, int]
) -> bool:
    """Return True if a loop around the branch binds the variable below it: as to None, once the value was copied."""
    bound = _bindings(scope, root(target), lines, everything=True)
    return any(lines[1] < line <= last for line in bound for _, last in loops)


def _is_read_of(node: ast.AST, name: str) -> bool:
    whole = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    return whole and isinstance(node, ast.expr) and ast.unparse(node) == name


def _calls_around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.Call]:
    """Yield the calls that get an expression, within one statement."""
    up = parents.get(node)
    while up is not None and not isinstance(up, ast.stmt):
        if isinstance(up, ast.Call):
            yield up
        up = parents.get(up)


def _branches(scope: ast.AST) -> Iterator[tuple[ast.If, ast.expr, ast.expr, bool, bool, list[ast.stmt]]]:
    """Yield the branches that a comparison with a best figure leads into, with the parts of the comparison."""
    for node in inside(scope):
        for compare in _compares(node.test) if isinstance(node, ast.If) else ():
            parts = _sides(compare)
            if parts is None or not isinstance(node, ast.If):
                continue
            figure, best, greater, strict = parts
            yield node, figure, best, greater, strict, node.body
            if node.orelse and compare is node.test:
                yield node, figure, best, not greater, not strict, node.orelse


def _compares(test: ast.expr) -> list[ast.Compare]:
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    return [one for one in parts if isinstance(one, ast.Compare) and len(one.ops) == 1]


def _sides(compare: ast.Compare) -> tuple[ast.expr, ast.expr, bool, bool] | None:
    """Return a figure, the variable with the best one, True if it must be greater, and True if it must differ."""
    left, right, op = compare.left, compare.comparators[0], compare.ops[0]
    if not isinstance(op, _COMPARED):
        return None
    greater = isinstance(op, ast.Gt | ast.GtE)
    if not best_in(right):
        left, right, greater = right, left, not greater
    while isinstance(right, ast.BinOp):
        right = right.left
    if not best_in(right) or best_in(left):
        return None
    return left, right, greater, isinstance(op, ast.Lt | ast.Gt)


def _becomes(assigned: list[ast.AST], best: ast.expr) -> bool:
    """Return True if a branch assigns the best figure, or the tuple or dict that has it."""
    names = {ast.unparse(best), *([ast.unparse(best.value)] if isinstance(best, ast.Subscript) else [])}
    return any(ast.unparse(target) in names for one in assigned for target, _ in stored(one))


def root(node: ast.expr) -> str:
    """Return the variable of an expression, or the attribute of ``self``.

    >>> root(ast.parse("best['loss']", mode="eval").body), root(ast.parse("self.best", mode="eval").body)
    ('best', 'self.best')
    """
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _is_attribute(node: ast.expr) -> bool:
    return root(node).startswith("self.")


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST], kinds: tuple[type, ...]) -> Iterator[ast.stmt]:
    """Yield the nodes of these kinds around another one in the same function, the innermost one first."""
    up = parents.get(node)
    while up is not None and not isinstance(up, _FUNCTIONS):
        if isinstance(up, kinds) and isinstance(up, ast.stmt):
            yield up
        up = parents.get(up)


def _bindings(scope: ast.AST, name: str, lines: tuple[int, int], *, everything: bool = False) -> Iterator[int]:
    """Yield the lines outside of a branch that bind a variable; constants count if everything does."""
    nodes = source.walk(scope) if name.startswith("self.") else inside(scope)
    for node in nodes:
        line = getattr(node, "lineno", 0)
        if not lines[0] <= line <= lines[1]:
            for target, value in stored(node):
                if root(target) == name and (everything or not is_constant(value)):
                    yield line


def _methods(tree: ast.AST, lines: tuple[int, ...]) -> set[str]:
    """Return the names of the functions with some lines."""
    functions = [one for one in source.walk(tree) if isinstance(one, ast.FunctionDef)]
    return {one.name for one in functions for line in lines if one.lineno <= line <= (one.end_lineno or 0)}


def _read(
    scope: ast.AST,
    target: ast.expr,
    best: ast.expr,
    lines: tuple[int, int],
    parents: dict[ast.AST, ast.AST],
    assigned: list[ast.AST],
) -> ast.expr | None:
    """Return the last place outside of a branch that reads the variable; None if its value is only used at once.

    A comparison with None and the best figure do not count, nor do statements under a flag that the branch sets.
    """
    flags = {
        root(place)
        for one in assigned
        for place, value in stored(one)
        if isinstance(value, ast.Constant) and value.value is True
    }
    name, found = root(target), list[ast.expr]()
    for node in source.walk(scope):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        same = root(node) == name or (name.startswith("self.") and isinstance(node, ast.Attribute))
        if not same or (isinstance(node, ast.Attribute) and node.attr != name.removeprefix("self.")):
            continue
        up = parents.get(node)
        if lines[0] <= node.lineno <= lines[1] or (isinstance(up, ast.Compare) and isinstance(up.ops[0], ast.Is)):
            continue
        if isinstance(up, ast.Compare) and isinstance(up.ops[0], ast.IsNot):
            continue
        if isinstance(up, ast.Subscript) and up.value is node:
            text = ast.unparse(up)
            if not isinstance(up.ctx, ast.Load) or text == ast.unparse(best):
                continue
            if isinstance(target, ast.Subscript) and isinstance(up.slice, ast.Constant) and text != ast.unparse(target):
                continue
        tests = [one.test for one in _around(node, parents, (ast.If,)) if isinstance(one, ast.If)]
        if not any(root(test) in flags for test in tests if isinstance(test, ast.Name | ast.Attribute)):
            found.append(node)
    return max(found, key=lambda one: one.lineno, default=None)
