"""Find variables that get a copy of a state dict and are never read: the copy is not loaded."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator

from truestep import source
from truestep.events import Site

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_REFLECTION = frozenset({"locals", "globals", "vars", "eval", "exec", "getattr"})
"""Functions that may lead to any variable; models have methods by these names."""


@functools.lru_cache(maxsize=256)
def unread_variable(site: Site, *, script: bool) -> str:
    """Return the variable that gets the result of a call, if no code reads it; "" for one that may be read.

    A comparison with None or a test of its truth does not count. Attributes and global variables may be read by other
    modules.

    Args:
        site: the call.
        script: True if the file is the script that runs, which no other module imports.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(site.path)))
    except (SyntaxError, ValueError):
        return ""
    parents = {child: node for node in source.walk(tree) for child in ast.iter_child_nodes(node)}
    call = next((node for node in source.walk(tree) if isinstance(node, ast.Call) and _is_at(node, site)), None)
    if call is None:
        return ""
    assigned = _target(call, parents)
    if assigned is None:
        return ""
    scope = _scope(assigned, parents)
    local = isinstance(assigned, ast.Name) and isinstance(scope, _Function)
    if not local and not script:
        return ""
    names = {node.id for node in source.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in source.walk(tree) if isinstance(node, ast.Attribute)}
    if names & _REFLECTION or "__dict__" in attributes:
        return ""
    outer = {name for node in source.walk(tree) if isinstance(node, ast.Nonlocal | ast.Global) for name in node.names}
    within: ast.AST = scope if local and ast.unparse(assigned) not in outer else tree
    read = any(_is_read(node, parents) for node in _same(assigned, within))
    return "" if read else ast.unparse(assigned)


def _is_at(node: ast.Call, site: Site) -> bool:
    return (node.lineno, node.col_offset, node.end_lineno) == (site.line, site.column, site.end_line) and (
        node.end_col_offset == site.end_column
    )


def _target(call: ast.expr, parents: dict[ast.AST, ast.AST]) -> ast.Name | ast.Attribute | None:
    """Return the variable that a copy of the result of a call is assigned to; None if it goes elsewhere."""
    node: ast.AST = call
    element: ast.AST = call
    while True:
        up = parents[node]
        if isinstance(up, ast.Assign) and len(up.targets) == 1:
            target = up.targets[0]
            if isinstance(target, ast.Tuple) and isinstance(up.value, ast.Tuple):
                pairs = zip(up.value.elts, target.elts, strict=False)
                target = next((variable for value, variable in pairs if value is element), target)
            return target if isinstance(target, ast.Name | ast.Attribute) else None
        if isinstance(up, ast.AnnAssign) and isinstance(up.target, ast.Name | ast.Attribute):
            return up.target
        if isinstance(up, ast.Call):
            name = up.func.attr if isinstance(up.func, ast.Attribute) else getattr(up.func, "id", "")
            if name == "append" and isinstance(up.func, ast.Attribute) and node is not up.func:
                return up.func.value if isinstance(up.func.value, ast.Name | ast.Attribute) else None
            if node is not up.func and name not in ("deepcopy", "copy", "dict", "OrderedDict"):
                return None
            if node is up.func and name not in ("items", "copy"):
                return None
        elif not isinstance(up, ast.Attribute | ast.Dict | ast.DictComp | ast.comprehension | ast.Tuple):
            return None
        element = node
        node = up


def _scope(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    while node in parents:
        node = parents[node]
        if isinstance(node, _Function):
            return node
    return node


def _same(variable: ast.Name | ast.Attribute, scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the places of a variable: of a name, or of an attribute of any object."""
    for node in source.walk(scope):
        if type(node) is type(variable) and _name(node) == _name(variable):
            yield node


def _name(node: ast.AST) -> object:
    return getattr(node, "id", None) or getattr(node, "attr", None)


def _is_read(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return True if the value is used, other than to learn whether there is one, or to add another one to a list."""
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return False
    up = parents[node]
    if isinstance(up, ast.Attribute) and up.attr == "append":
        return False
    if isinstance(up, ast.For) and up.iter is node and isinstance(up.target, ast.Name):
        scope = _scope(up, parents)
        return any(_is_read(same, parents) for same in _same(up.target, scope))
    if isinstance(up, ast.Compare):
        return not all(isinstance(one, ast.Constant) and one.value is None for one in up.comparators)
    if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not):
        return False
    return not (isinstance(up, ast.If | ast.While | ast.Assert | ast.IfExp) and up.test is node)
