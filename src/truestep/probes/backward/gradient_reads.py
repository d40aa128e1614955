"""Read the source around a backward pass: does it read the gradients, rather than leave them to an optimizer?"""

from __future__ import annotations

import ast
import functools

from truestep import source
from truestep.events import Site

_CLEARING = ("zero_", "detach_", "fill_")


def reads_gradients(site: Site | None) -> bool:
    """Return True if the code around a line reads ``.grad`` of a tensor, other than to clear it.

    This is the innermost loop or function, and for a function also the code around its calls in the same file. Norms
    that are logged after the loop of a window say nothing of the passes in it.
    """
    return site is not None and _reads(site.path, site.line)


@functools.lru_cache(maxsize=256)
def _reads(path: str, line: int) -> bool:
    tree = source.parsed(path)
    return tree is not None and any(
        _is_read(node, parent) for around in _around(tree, line) for node, parent in _attributes(around)
    )


def _around(tree: ast.Module, line: int) -> list[ast.AST]:
    found = _innermost(tree, line)
    if not isinstance(found, ast.FunctionDef):
        return [found] if found is not None else []
    calls = [node.lineno for node in source.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == found.name]
    return [found, *(around for call in calls if (around := _innermost(tree, call)) is not None)]


def _innermost(tree: ast.AST, line: int) -> ast.AST | None:
    found = None
    for node in source.walk(tree):  # breadth first: the last one is the innermost
        if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.FunctionDef):
            if node.lineno <= line <= (node.end_lineno or node.lineno):
                found = node
    return found


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _attributes(around: ast.AST) -> list[tuple[ast.Attribute, ast.AST]]:
    """Return all places that name ``.grad`` of something, each with the node that it is a part of."""
    return [
        (child, parent)
        for parent in source.walk(around)
        for child in ast.iter_child_nodes(parent)
        if isinstance(child, ast.Attribute) and child.attr == "grad"
    ]


def _is_read(node: ast.Attribute, parent: ast.AST) -> bool:
    if not isinstance(node.ctx, ast.Load) or (isinstance(parent, ast.Compare) and _is_none(parent)):
        return False
    if isinstance(parent, ast.Attribute) and parent.attr in _CLEARING:
        return False
    return _name(node.value) not in ("autograd", "torch")  # the function torch.autograd.grad


def _is_none(comparison: ast.Compare) -> bool:
    return any(isinstance(one, ast.Constant) and one.value is None for one in comparison.comparators)
