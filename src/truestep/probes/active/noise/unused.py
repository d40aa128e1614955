"""Variables that the program reads to make other ones only."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

from truestep import source
from truestep.probes.variables.origins import scope_of

_FACTS = frozenset({"shape", "size", "ndim", "dim", "numel", "dtype", "device", "type", "element_size"})
_LOOPS = ast.For | ast.While | ast.AsyncFor


def only_makes(frame: FrameType, names: set[str], made: set[str]) -> bool:
    """Return True if variables are read, in the loop around the current line, for one other value alone.

    Reads of their shapes count as none. A variable that enters the other value may be made of them too.

    Args:
        frame: a frame of the program.
        names: variables with one value.
        made: variables with the other value.
    """
    nodes = _in_loop(frame)
    if not nodes or any(name.startswith("_") for name in names):
        return False
    stores = [(node, _stored(node)) for node in nodes if _stored(node)]
    enter = made | names
    for node, stored in stores:
        if stored & made:
            enter |= {one.id for one in source.walk(node) if isinstance(one, ast.Name)}
    within = {id(one) for node, stored in stores if stored <= enter for one in source.walk(node)}
    return all(id(one) in within for one in _reads(nodes, names))


def _in_loop(frame: FrameType) -> list[ast.AST]:
    """Return the nodes of the innermost loop around the current line of a frame; those of its function without one."""
    nodes, line = scope_of(frame.f_code), frame.f_lineno
    loops = [one for one in nodes if isinstance(one, _LOOPS) and one.lineno <= line <= (one.end_lineno or 0)]
    if not loops:
        return nodes
    inner = max(loops, key=lambda one: one.lineno)
    return [one for one in nodes if inner.lineno <= getattr(one, "lineno", 0) <= (inner.end_lineno or 0)]


def _stored(node: ast.AST) -> set[str]:
    """Return the variables that a statement stores; empty if it stores in other places too."""
    targets: list[Any] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    leaves = [one for target in targets for one in (getattr(target, "elts", None) or [target])]
    return {one.id for one in leaves} if all(isinstance(one, ast.Name) for one in leaves) else set()


def _reads(nodes: list[ast.AST], names: set[str]) -> list[ast.Name]:
    """Return the reads of the values of variables, also in the functions inside."""
    every = {id(one): one for node in nodes for one in source.walk(node)}
    facts: set[int] = set()
    for one in every.values():
        if isinstance(one, ast.Attribute) and one.attr in _FACTS:
            facts.add(id(one.value))
        if isinstance(one, ast.Call) and _names_fact(one.func):
            facts |= {id(given) for given in one.args}
    reads = [one for one in every.values() if isinstance(one, ast.Name) and one.id in names]
    return [one for one in reads if isinstance(one.ctx, ast.Load) and id(one) not in facts]


def _names_fact(called: ast.expr) -> bool:
    """Return True for ``len``, and functions that make a tensor of the shape of another one."""
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name == "len" or name.endswith("_like")
