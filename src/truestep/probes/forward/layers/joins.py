"""The source of operations that join results: which one joins a result with itself, and which repeats it on purpose."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep import source
from truestep.events import Site
from truestep.syntax.names import dotted

_JOINING = {"cat", "concat", "concatenate", "hstack", "stack", "column_stack", "dstack"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LISTS = (ast.List, ast.Tuple, ast.ListComp)


def join_with_itself(places: tuple[Site, ...]) -> Site | None:
    """Return the only call around these places, the innermost first, that joins two equal expressions."""
    for place in places:
        found = [call for call in _joins(place) if _has_equal_parts(call)]
        if found:
            return _site(found[0], place) if len(found) == 1 else None
    return None


def is_on_purpose(places: tuple[Site, ...]) -> bool:
    """Return True if a function around one of these places joins a number of copies, as in ``torch.cat([x] * 2)``."""
    return any(
        (isinstance(part, ast.ListComp) and _is_constant(part)) or (isinstance(part, ast.BinOp) and _is_of_list(part))
        for place in places
        for call in _joins(place)
        for part in call.args[:1]
    )


def _is_constant(node: ast.ListComp) -> bool:
    """Return True if each pass of a comprehension gives the same name."""
    names = {one.id for part in node.generators for one in ast.walk(part.target) if isinstance(one, ast.Name)}
    return isinstance(node.elt, ast.Name) and node.elt.id not in names


def _is_of_list(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.Mult) and (isinstance(node.left, _LISTS) or isinstance(node.right, _LISTS))


def _has_equal_parts(call: ast.Call) -> bool:
    given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "tensors"), None)
    parts = [ast.dump(part) for part in given.elts] if isinstance(given, ast.List | ast.Tuple) else []
    return len(set(parts)) < len(parts)


def _joins(place: Site) -> Iterator[ast.Call]:
    """Yield the calls that join, in the function around a place; of a file without one, those of its statement."""
    tree = source.parsed(place.path)
    if tree is None:
        return
    nodes = [*tree.body, *(node for node in source.walk(tree) if isinstance(node, _SCOPES))]
    around = [node for node in nodes if node.lineno <= place.line <= (node.end_lineno or node.lineno)]
    for node in source.walk(max(around, key=lambda one: one.lineno)) if around else ():
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _JOINING:
            yield node


def _site(call: ast.Call, place: Site) -> Site:
    end, column = call.end_lineno or call.lineno, call.end_col_offset or 0
    return Site(place.path, call.lineno, call.col_offset, end, column, place.function)
