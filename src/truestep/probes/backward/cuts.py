"""Find the cut of a graph: the one expression in the user's source, between two calls, that drops the tape.

The modules that ran and those that the loss reaches are known at run time, and show between which two calls the cut
lies. Only this part of the source is read. If several expressions could have cut it, or none, no line is named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise

from truestep import source
from truestep.events import Site

Chain = tuple[Site, ...]
"""The user's lines on the stack, the innermost first."""

_METHODS = {"detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin"}
_FUNCTIONS = {"tensor", "as_tensor", "from_numpy", "argmax", "argmin"}
_SWITCHES = {"no_grad", "inference_mode", "set_grad_enabled"}
Place = tuple[int, int]


def boundary(forwarded: dict[int, Chain], reached: Iterable[int], backward: Chain) -> tuple[Chain, Chain] | None:
    """Return the last call that the loss does not reach and the first after it that it does reach.

    Args:
        forwarded: place of the call by parameter, in the order of the calls of their modules.
        reached: parameters that the loss reaches; without any, the backward pass itself comes next.
        backward: place of the backward pass.
    """
    known = set(reached)
    for (one, before), (other, after) in pairwise(forwarded.items()):
        if one not in known and other in known:
            return before, after
    if forwarded and known.isdisjoint(forwarded):
        return next(reversed(forwarded.values())), backward
    return None


def cut_between(before: Chain, after: Chain) -> tuple[Site, str] | None:
    """Return place and text of the only expression that cuts the graph between two calls."""
    outer, inner = before[::-1], after[::-1]
    shared = 0
    while shared < min(len(outer), len(inner)) and outer[shared] is inner[shared]:
        shared += 1
    found: list[tuple[Site, str]] = []
    if shared < min(len(outer), len(inner)):
        found += _cuts(outer[shared], _end(outer[shared]), _end(inner[shared]))
    for site in outer[shared + 1 :]:
        found += _cuts(site, _end(site), None)
    for site in inner[shared + 1 :]:
        found += _cuts(site, None, _end(site))
    return found[0] if len(found) == 1 else None


def switch(calls: Chain) -> tuple[Site, str] | None:
    """Return place and text of the innermost statement around a call that switches gradients off."""
    for site in calls:
        tree = source.parsed(site.path)
        found: ast.expr | None = None
        for node in source.walk(tree) if tree is not None else ():
            if isinstance(node, ast.With):
                made = [item.context_expr for item in node.items]
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                made = node.decorator_list
            else:
                continue
            if node.body[0].lineno <= site.line <= (node.end_lineno or 0):
                found = next((one for one in made if _switches_off(one)), found)
        if found is not None:
            return Site(site.path, found.lineno, found.col_offset, *_last(found), function=site.function), "no_grad()"
    return None


def _switches_off(made: ast.expr) -> bool:
    called = made.func if isinstance(made, ast.Call) else made
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _SWITCHES


def _end(site: Site) -> Place:
    return (site.end_line, site.end_column) if site.end_column >= 0 else (site.line, 1 << 30)


def _cuts(site: Site, start: Place | None, end: Place | None) -> Iterator[tuple[Site, str]]:
    """Yield cuts of the result of a call, or of the arguments of the function around it.

    Args:
        site: the call before the cut (``start`` is its end), or the call after it.
        start: cuts end after this place; None for the beginning of the function.
        end: cuts end no later than this place; None for the end of the function.
    """
    function = _around(source.parsed(site.path), site.line)
    if function is None:
        return
    flowing = set() if start else _parameters(function)
    for statement in _statements(function):
        begins = start is not None and _holds(statement, site)
        for node in _candidates(statement):
            last = _last(node)
            if (start is not None and last <= start) or (end is not None and last > end):
                continue
            of_it = begins and _holds(node, site)
            if (of_it or flowing & _loaded(node)) and _is_used(function, statement, end):
                yield Site(site.path, node.lineno, node.col_offset, *last, function=site.function), _words(node)
        if begins or any(flowing & _loaded(part) for part in _own_parts(statement)):
            flowing |= _assigned(statement)


def _parameters(function: ast.AST) -> set[str]:
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {one.arg for one in every if one is not None and one.arg not in ("self", "cls")}


def _loaded(node: ast.AST) -> set[str]:
    """Return the names, and the attributes written as ``a.b``, that are read somewhere below a node."""
    return {
        ast.unparse(one)
        for one in source.walk(node)
        if isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load)
    }


def _assigned(statement: ast.stmt) -> set[str]:
    """Return the names that a statement assigns; for ``d["key"]`` it is ``d``."""
    targets: list[ast.expr] = []
    match statement:
        case ast.Assign():
            targets = list(statement.targets)
        case ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.AsyncFor():
            targets = [statement.target]
    names = set()
    while targets:
        one = targets.pop()
        if isinstance(one, ast.Tuple | ast.List):
            targets += one.elts
        elif isinstance(one, ast.Subscript | ast.Starred):
            targets.append(one.value)
        elif isinstance(one, ast.Name | ast.Attribute):
            names.add(ast.unparse(one))
    return names


def _around(tree: ast.Module | None, line: int) -> ast.AST | None:
    """Return the innermost function around a line, else the module."""
    found: ast.AST | None = tree
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.body[0].lineno <= line:
            if (node.end_lineno or 0) >= line:
                found = node
    return found


def _candidates(statement: ast.stmt) -> Iterator[ast.expr]:
    """Return the expressions that cut in one statement, not in those inside it; outermost ones only."""
    rest: list[ast.AST] = list(_own_parts(statement))
    while rest:
        node = rest.pop()
        if isinstance(node, ast.expr) and _is_cut(node):
            yield node
        elif not isinstance(node, ast.Lambda):
            rest += ast.iter_child_nodes(node)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        for statement in getattr(node, name, ()):
            if isinstance(statement, ast.stmt):
                yield statement
                if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield from _statements(statement)
    for handler in getattr(node, "handlers", ()):
        yield from _statements(handler)


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts that a statement evaluates itself, without the statements in its body."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.ExceptHandler):
            yield child


def _is_cut(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch" | "np" | "numpy"), attr=name)):
            return name in _FUNCTIONS
        case ast.Attribute(attr="data", ctx=ast.Load()):
            return True
    return False


def _words(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch" | "np" | "numpy" as module), attr=name)):
            return f"{module}.{name}(...)"
        case ast.Call(func=ast.Attribute(attr=name)):
            return f".{name}()"
    return ".data"


def _is_used(function: ast.AST, statement: ast.stmt, end: Place | None) -> bool:
    """Return True if the result of a statement can reach the loss: a value that is only logged is not a cut."""
    if isinstance(statement, ast.Return) or (end is not None and _holds_place(statement, end)):
        return True
    names, after = _assigned(statement), _last(statement)
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and after < (node.lineno, node.col_offset)
        and (end is None or _last(node) <= end)
        and ast.unparse(node) in names
        for node in source.walk(function)
    )


def _holds(node: ast.expr | ast.stmt, site: Site) -> bool:
    return _holds_place(node, (site.line, max(site.column, 0)))


def _holds_place(node: ast.expr | ast.stmt, place: Place) -> bool:
    return (node.lineno, node.col_offset) <= place <= _last(node)


def _last(node: ast.expr | ast.stmt) -> Place:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
