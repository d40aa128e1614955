"""Read the source around a backward pass: does it read the gradients, rather than leave them to an optimizer?"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable

from truestep import source
from truestep.events import Site

_GRADIENT = re.compile(r"\bgrads?\b|gradient")
_CLEARING = ("zero_", "detach_", "fill_")
_NORMS = ("clip_grad_norm_", "get_total_norm", "clip_grad_norm")


def reads_gradients(site: Site | None) -> bool:
    """Return True if the code around a line reads ``.grad`` of a tensor, other than to clear it, or keeps its norm.

    This is the innermost loop or function, and for a function also the code around its calls in the same file, each
    with the functions of the file that it calls. Norms that are logged after the loop of a window say nothing of the
    passes in it.
    """
    return site is not None and _reads(site.path, site.line)


def names_gradients(paths: Iterable[str]) -> bool:
    """Return True if a file names a gradient. An average moves weights without one; no file may be readable."""
    read = [path for path in paths if source.read(path).lines]
    return not read or any(map(_names, read))


@functools.lru_cache(maxsize=256)
def _names(path: str) -> bool:
    return any(_GRADIENT.search(line) for line in source.read(path).lines)


@functools.lru_cache(maxsize=256)
def _reads(path: str, line: int) -> bool:
    tree = source.parsed(path)
    if tree is None:
        return False
    blocks = _around(tree, line)
    return any(_has_reads(block) for block in [*blocks, *_helpers(tree, blocks, line)])


def _has_reads(block: ast.AST) -> bool:
    return any(_is_read(node, parent) for node, parent in _attributes(block)) or any(
        isinstance(child, ast.Call) and _name(child.func) in _NORMS
        for parent in source.walk(block)
        if not isinstance(parent, ast.Expr)  # a bare statement: the norm is not kept
        for child in ast.iter_child_nodes(parent)
    )


def _helpers(tree: ast.Module, blocks: list[ast.AST], line: int) -> list[ast.AST]:
    """Return the functions and methods of a file that blocks call, other than one that holds a line."""
    called = {_name(node.func) for block in blocks for node in source.walk(block) if isinstance(node, ast.Call)}
    return [
        node
        for node in source.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name in called
        and not node.lineno <= line <= (node.end_lineno or node.lineno)
    ]


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
