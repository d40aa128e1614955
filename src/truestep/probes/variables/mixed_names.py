"""The source of averages: statements that write a mix of a variable and of another one into the variable."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.unread.statements import scope_of
from truestep.probes.variables.kept_names import inside, is_constant, place_of, root, stored

_SAME = frozenset({"detach", "clone", "data", "to", "cpu", "float", "values", "items"})
"""Methods and attributes that a value has as well."""
_KINDS = {"mul_": "scale", "add_": "add", "sub_": "sub", "copy_": "set", "lerp_": "mix"}
_DEEP = 4


class Mixed(NamedTuple):
    """A statement that averages.

    Attributes:
        average: the variable that is written: a tensor, or a list, tuple or dict of tensors.
        others: variables that it is mixed with; those of numbers are among them.
        site: the statement.
        binding: the one statement that gives the variable its first value.
        flags: variables that must be True for the statement to run.
    """

    average: ast.expr
    others: tuple[ast.expr, ...]
    site: Site
    binding: Site
    flags: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def mixed_names(code: CodeType) -> tuple[Mixed, ...]:
    """Return the averages of a function or of the main file, also those that functions of the file write for it."""
    tree, scope = source.parsed(code.co_filename), scope_of(code)
    if tree is None or scope is None:
        return ()
    path, found = code.co_filename, list[Mixed]()
    for average, others, statement in _mixes(scope):
        found += _bound(scope, average, others, (path, place_of(path, statement, code.co_name)), statement)
    helpers = {one.name: one for one in source.walk(tree) if isinstance(one, ast.FunctionDef) and one is not scope}
    for call in inside(scope):
        helper = helpers.get(call.func.id) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        if helper is None or not isinstance(call, ast.Call):
            continue
        names = [one.arg for one in helper.args.args]
        given = dict(zip(names, call.args, strict=False)) | {one.arg: one.value for one in call.keywords if one.arg}
        for average, others, statement in _mixes(helper):
            passed = [given[text] for one in others if (text := ast.unparse(one)) in given]
            into = given.get(ast.unparse(average))
            if into is not None and passed and root(into):
                others, site = tuple(one for one in passed if root(one)), place_of(path, statement, helper.name)
                if _flags(statement, path) == ():
                    found += _bound(scope, into, others, (path, site), call)
    return tuple(found)


def _bound(
    scope: ast.AST, average: ast.expr, others: tuple[ast.expr, ...], place: tuple[str, Site], runs: ast.stmt | ast.expr
) -> Iterator[Mixed]:
    """Yield an average with its binding, if it has at most one: a later one may be a copy."""
    name, (path, site) = root(average), place
    bindings = [
        (node, value)
        for node in inside(scope)
        for target, value in stored(node)
        if root(target) == name and not is_constant(value) and not isinstance(node, ast.AugAssign)
        and not _is_whole(target)
    ]  # fmt: skip
    flags = _flags(runs, path)
    if not name or not others or len(bindings) > 1 or name.startswith("self.") or flags is None:
        return
    first, value = bindings[0] if bindings else (None, None)
    if isinstance(first, ast.stmt) and value is not None and _is_without_graph(value):
        yield Mixed(average, others, site, place_of(path, first), flags)


def _is_without_graph(value: ast.expr) -> bool:
    """Return True for tensors without their graph, which are meant as copies; a plain second name may be a start."""
    match value:
        case ast.ListComp(elt=inner) | ast.DictComp(value=inner):
            return _is_without_graph(inner)
        case ast.Call(func=ast.Attribute(attr="detach"), args=[]) | ast.Attribute(attr="data"):
            return True
    return False


def _flags(node: ast.AST, path: str) -> tuple[str, ...] | None:
    """Return the variables that must be True for a statement to run; None if other conditions decide about it.

    A comparison by size, or of a remainder, as in ``step % 10 == 0``, holds at some time.
    """
    tree, flags = source.parsed(path), list[str]()
    parents = source.parents(tree) if tree is not None else {}
    inner: ast.AST = node
    up = parents.get(node)
    while up is not None and not isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        if isinstance(up, ast.If):
            match up.test:
                case ast.Name(id=name) if inner in up.body:
                    flags.append(name)
                case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                    pass
                case ast.Compare(left=ast.BinOp(op=ast.Mod())):
                    pass
                case _:
                    return None
        inner, up = up, parents.get(up)
    return tuple(flags)


def _is_whole(target: ast.expr) -> bool:
    """Return True for the elements of a tensor, all of them: ``average[:]``, ``average[...]``."""
    if not isinstance(target, ast.Subscript):
        return False
    index = target.slice
    return isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value is Ellipsis)


def _mixes(scope: ast.AST) -> Iterator[tuple[ast.expr, tuple[ast.expr, ...], ast.stmt]]:
    """Yield the variables that statements of a scope average, those that they are mixed with, and the statements."""
    nodes = list(inside(scope))
    loops = dict(pair for node in nodes for pair in _pairs(node))
    scaled: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Expr | ast.AugAssign | ast.Assign):
            for written, value, kind in _written(node):
                own, others = _base(written), [one for one, added in _terms(value, kind != "sub") if added]
                if own is None:
                    continue
                text = ast.unparse(own)
                itself = any(ast.unparse(one) == text for one, _ in _terms(value))
                if kind == "scale":
                    scaled.add(text)
                elif kind == "mix" or (kind == "set" and itself) or (kind != "set" and (itself or text in scaled)):
                    rest = [_container(one, loops) for one in others if ast.unparse(one) != text]
                    whole = _container(own, loops)
                    kept = {ast.unparse(one): one for one in rest if ast.unparse(one) != ast.unparse(whole)}
                    yield whole, tuple(kept.values()), node


def _written(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """Yield the places that a statement writes to, with the value, and the way: one of `_KINDS`."""
    match node:
        case ast.AugAssign(target=target, op=ast.Mult(), value=value):
            yield target, value, "scale"
        case ast.AugAssign(target=target, op=ast.Add() | ast.Sub() as op, value=value):
            yield target, value, "add" if isinstance(op, ast.Add) else "sub"
        case ast.Assign(targets=[ast.Subscript() as target], value=value) if _is_whole(target):
            yield target.value, value, "set"
        case ast.Expr(value=ast.Call() as call):
            yield from _called(call)


def _called(call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=[target, value, *_]):
            if name.startswith("_foreach_"):
                yield from _by_method(name.removeprefix("_foreach_"), target, value)
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[value, *_]):
            if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and owner.func.attr.endswith("_"):
                yield from _called(owner)
                owner = owner.func.value
            yield from _by_method(name, owner, value)


def _by_method(name: str, target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    if name in _KINDS:
        yield target, value, _KINDS[name]


def _base(node: ast.expr) -> ast.expr | None:
    """Return the variable, attribute or entry of an expression with the same elements, such as ``w.data``."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _SAME:
                node = owner
            case ast.Attribute(value=owner, attr=name) if name in _SAME:
                node = owner
            case ast.Name() | ast.Subscript() | ast.Attribute(value=ast.Name(id="self")):
                return node
            case _:
                return None


def _terms(node: ast.expr, added: bool = True) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the variables of sums, differences, products and quotients, and False for those that are subtracted."""
    if isinstance(node, ast.BinOp):
        yield from _terms(node.left, added)
        yield from _terms(node.right, added is not isinstance(node.op, ast.Sub))
    elif isinstance(node, ast.UnaryOp):
        yield from _terms(node.operand, added is not isinstance(node.op, ast.USub))
    else:
        base = _base(node)
        if base is not None:
            yield base, added


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variables of a loop, with the lists or dicts that it goes over."""
    if isinstance(node, ast.For):
        yield from _zipped(node.target, node.iter)


def _zipped(target: ast.expr, items: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match items:
        case ast.Call(func=ast.Name(id="zip"), args=several) if isinstance(target, ast.Tuple):
            for one, each in zip(target.elts, several, strict=False):
                yield from _zipped(one, each)
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner]) if isinstance(target, ast.Tuple):
            yield from _zipped(target.elts[-1], inner)
        case ast.Call(func=ast.Attribute(value=owner, attr="items"), args=[]) if isinstance(target, ast.Tuple):
            if isinstance(target.elts[-1], ast.Name):
                yield target.elts[-1].id, owner
        case ast.Call(func=ast.Attribute(value=owner, attr="values"), args=[]) | owner if isinstance(target, ast.Name):
            yield target.id, owner


def _container(node: ast.expr, loops: dict[str, ast.expr]) -> ast.expr:
    """Return the list or dict of an entry, of a variable of a loop, or the variable itself."""
    for _ in range(_DEEP):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Name) and node.id in loops:
            node = loops[node.id]
        else:
            break
    return node
