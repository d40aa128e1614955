"""Sums that are reported every so often, divided by the distance of the reports, and go on from report to report."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.syntax import Binding, Loop, Program, Suspicion, dotted

_COUNT = re.compile(r"\blen\(|numel|nelement|\.size|\.shape|count|param_groups")
"""Numbers of samples, and rates: their sums are reported as they are."""


def sums_of_all_reports(program: Program) -> Iterator[Suspicion]:
    """Yield divisions of a sum by the distance of two reports, of a sum that nothing sets to zero between them."""
    for loop in program.loops if "%" in program.text else ():
        if loop.parent is not None:
            continue
        branches = [node for node in ast.walk(loop.node) if isinstance(node, ast.If)]
        reports = [(one, periods) for one in branches if not _ends(one) and (periods := _periods(one.test, loop))]
        for key, bindings in loop.scope.bindings.items() if reports else ():
            start, added = _starts_once(bindings), [one for one in bindings if one.how == "augmented"]
            elsewhere = not key.isidentifier() or f"global {key}" in program.text or f"nonlocal {key}" in program.text
            if start is None or elsewhere or not added or not all(_adds_in(one, loop) for one in added):
                continue
            for branch, periods in reports:
                yield from _quotients(key, start, added[0], branch, periods)


def _periods(test: ast.expr, loop: Loop) -> set[str]:
    """Return the numbers of iterations between two reports, as text; not those that a loop makes as a whole."""
    ranges = [node.iter for node in ast.walk(loop.node) if isinstance(node, ast.For | ast.AsyncFor)]
    whole = {ast.dump(part) for one in ranges for part in ast.walk(one) if isinstance(part, ast.expr)}
    found = {
        ast.dump(node.right)
        for node in ast.walk(test)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and "len(" not in ast.unparse(node.right)
    }
    return found - whole - {ast.dump(ast.Constant(1))}


def _ends(branch: ast.If) -> bool:
    """Return True if a branch may leave its loop: there is only one report."""
    return any(isinstance(node, ast.Break | ast.Return | ast.Raise) for node in ast.walk(branch))


def _starts_once(bindings: list[Binding]) -> ast.AST | None:
    """Return the statement before all loops that sets a variable to zero; None if there is another one."""
    starts = [one for one in bindings if one.how != "augmented"]
    if len(starts) != 1 or starts[0].how != "=" or starts[0].context.loop is not None:
        return None
    value = starts[0].value
    return starts[0].node if isinstance(value, ast.Constant) and value.value in (0, 0.0) else None


def _adds_in(one: Binding, loop: Loop) -> bool:
    """Return True if a binding adds a value, not a count, in a loop."""
    counts = one.value is None or isinstance(one.value, ast.Constant) or _COUNT.search(ast.unparse(one.value))
    return one.operator == "Add" and not counts and one.context.loop is not None and one.context.loop.within(loop)


def _quotients(key: str, start: ast.AST, added: Binding, branch: ast.If, periods: set[str]) -> Iterator[Suspicion]:
    for node in (one for statement in branch.body for one in ast.walk(statement)):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or ast.dump(node.right) not in periods:
            continue
        if _is_sum(node.left, key):
            every = ast.unparse(node.right)
            yield Suspicion(
                node,
                f"`{key}` goes on from report to report, and each report divides it by the {every} of the last ones",
                "divides the sum of all iterations so far",
                f"set `{key}` to zero after each report",
                ((start, "set to zero once"), (added.node, "adds up")),
            )


def _is_sum(node: ast.expr, key: str) -> bool:
    """Return True for a variable, as it is or as a number."""
    if isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "item" else None
        inner = node.args[0] if dotted(node.func) == "float" and len(node.args) == 1 else inner
        return inner is not None and _is_sum(inner, key)
    return dotted(node) == key
