"""Steps that a program takes or leaves out by the value of a loss, from the syntax."""

from __future__ import annotations

import ast
import builtins
import functools

from truestep import source
from truestep.events import Site

_STEPS = frozenset({"step", "zero_grad"})
_OTHERS = frozenset({"torch", "self", "nn", "F", *vars(builtins)})
"""Names that a loss has in common with other expressions: modules, functions of Python."""


def is_refused(site: Site | None) -> bool:
    """Return True if a step or a clearing stands under a condition on the loss of a backward pass.

    Args:
        site: the line of the backward pass.
    """
    return site is not None and (site.line, site.column) in _refused(site.path)


@functools.lru_cache(maxsize=64)
def _refused(path: str) -> frozenset[tuple[int, int]]:
    tree = source.parsed(path)
    return frozenset() if tree is None else refused_in(tree)


def refused_in(tree: ast.AST) -> frozenset[tuple[int, int]]:
    """Return the places of the backward passes of which a condition of their function reads the loss, to step or clear.

    >>> code = '''
    ... loss.backward()
    ... if loss.item() > limit:
    ...     optimizer.zero_grad()
    ... else:
    ...     optimizer.step()
    ... (error / len(parts)).backward()
    ... if step % 4 == 3 or step == len(batches):
    ...     optimizer.step()
    ... (error / window).backward()
    ... if step % window == 0:
    ...     optimizer.step()'''
    >>> refused_in(ast.parse(code))
    frozenset({(2, 0)})
    """
    found = set()
    functions = [node for node in source.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for scope in (tree, *functions):
        nodes = list(source.own_nodes(scope))
        guards = [node.test for node in nodes if isinstance(node, ast.If) and _is_acting(node)]
        for node in nodes if guards else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
                names = _made_from(_names(node.func.value) - _OTHERS, nodes)
                if any(names & (_names(test) - _counted(test)) for test in guards):
                    found.add((node.lineno, node.col_offset))
    return frozenset(found)


def _is_acting(choice: ast.If) -> bool:
    """Return True if a branch of a choice, without those of others in it, steps or clears."""
    for statement in (*choice.body, *choice.orelse):
        value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _STEPS:
            return True
    return False


def _made_from(names: set[str], nodes: list[ast.AST]) -> set[str]:
    """Return names of losses, and those of numbers and signs that are computed from these alone."""
    made = set(names)
    for node in nodes:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call() | ast.Compare() | ast.BoolOp() | ast.UnaryOp() as value
            ):
                if _names(value) & made and (not isinstance(value, ast.Call) or _is_read(value)):
                    made.add(name)
    return made


def _is_read(call: ast.Call) -> bool:
    """Return True for a call that reads a number, as in ``loss.item()`` and ``float(loss)``."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return called in ("item", "float", "isfinite", "isnan", "isinf", "bool", "detach", "any", "all")


def _counted(test: ast.expr) -> set[str]:
    """Return the names in remainders of a condition, which are numbers of steps, as in ``step % window``."""
    rests = (one for one in ast.walk(test) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod))
    return {name for rest in rests for name in _names(rest)}


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
