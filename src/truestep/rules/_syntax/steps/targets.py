"""Results of calls without gradients that a loss is made of, from the syntax."""

from __future__ import annotations

import ast
import functools

from truestep import source
from truestep.events import Site


def is_target(site: Site | None) -> bool:
    """Return True if a loss reads the result of a call: the call is a part of the training, and no evaluation."""
    return site is not None and (site.line, site.column) in _targets(site.path)


@functools.lru_cache(maxsize=64)
def _targets(path: str) -> frozenset[tuple[int, int]]:
    tree = source.parsed(path)
    return frozenset() if tree is None else targets_in(tree)


def targets_in(tree: ast.AST) -> frozenset[tuple[int, int]]:
    """Return the places of calls of which the loop, or function, with a backward pass makes its loss.

    >>> code = '''
    ... target = net(ema, x).softmax(1)
    ... shown = net(ema, x)
    ... loss = (net(weights, x).softmax(1) - target).square().mean()
    ... loss.backward()'''
    >>> sorted(targets_in(ast.parse(code)))[0]
    (2, 9)
    >>> any(line == 3 for line, _ in targets_in(ast.parse(code)))
    False
    """
    found: set[tuple[int, int]] = set()
    scopes = [one for one in source.walk(tree) if isinstance(one, ast.For | ast.While | ast.FunctionDef)]
    for scope in (tree, *scopes):
        nodes = list(source.own_nodes(scope))
        loops = [one for one in nodes if isinstance(one, ast.For | ast.While)]
        inner = {id(one) for loop in loops for one in source.own_nodes(loop)}
        losses = [one.func.value for one in nodes if id(one) not in inner and _is_pass(one)]  # type: ignore[attr-defined]
        read = {one.id for loss in losses for one in ast.walk(loss) if isinstance(one, ast.Name)}
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        for _ in assigned if read else ():
            made = [node for node in assigned if read & _stored(node)]
            read |= {one.id for node in made for one in ast.walk(node.value) if isinstance(one, ast.Name)}
            calls = [one for node in made for one in ast.walk(node.value) if isinstance(one, ast.Call)]
            found |= {(one.lineno, one.col_offset) for one in calls}
    return frozenset(found)


def _is_pass(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"


def _stored(node: ast.Assign) -> set[str]:
    return {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
