"""Weights that a program chooses by samples of its test, loads again, and evaluates on the same samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from truestep.syntax.choices.nodes import calls_in, given_to, last_name, names_of, pairs_of, stored_in
from truestep.syntax.choices.words import FOR_CHOICE, OTHER, TEST, words_of

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_KEEPING = frozenset({"state_dict", "save", "deepcopy"})
_SHOWING = frozenset({
    "add_scalar", "append", "debug", "float", "format", "info", "item", "join", "log", "max", "min", "print", "round",
    "save", "step", "write",
})  # fmt: skip
"""Functions that get figures."""
_BEST = frozenset({"best", "max", "min", "highest", "lowest"})


class WeightsByTest(NamedTuple):
    """Weights that are kept in a branch for a new best figure of the test.

    Attributes:
        name: the figure, such as "accuracy".
        by: the samples, such as "test_loader".
        branch: the comparison with the best figure so far.
        figure: the call that evaluates the chosen weights on the same samples.
    """

    name: str
    by: str
    branch: ast.expr
    figure: ast.Call


def weights_by_test(tree: ast.Module) -> list[WeightsByTest]:
    """Return the choices of weights by the test, in a file without a part for choices.

    >>> text = '''
    ... for epoch in range(9):
    ...     step()
    ...     acc = evaluate(net, x_test)
    ...     if acc > best_acc:
    ...         best_acc, best = acc, copy.deepcopy(net.state_dict())
    ... net.load_state_dict(best)
    ... print(evaluate(net, x_test))
    ... '''
    >>> [(one.name, one.by, one.figure.lineno) for one in weights_by_test(ast.parse(text))]
    [('acc', 'x_test', 8)]
    >>> weights_by_test(ast.parse(text.replace("acc = evaluate(net, x_test)", "acc = evaluate(net, x_dev)")))
    []
    """
    if not any(words_of(one) & TEST for one in names_of(tree)) or _has_part_for_choice(tree):
        return []
    found: list[WeightsByTest] = []
    for scope in ast.walk(tree):
        body = scope.body if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) else []
        for block in _blocks(body):
            found += _chosen(tree, block)
    return found


def _has_part_for_choice(tree: ast.Module) -> bool:
    """Return True if a call, a loop or an index has samples with the name of a validation."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and _name(one) not in _SHOWING:
            parts = [*given_to(one), *([one.func.value] if isinstance(one.func, ast.Attribute) else [])]
        elif isinstance(one, ast.For | ast.AsyncFor | ast.comprehension):
            parts = [one.iter]
        else:
            parts = [one] if isinstance(one, ast.Subscript) else []
        if any(words_of(name) & FOR_CHOICE for part in parts for name in names_of(part)):
            return True
    return False


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements of a function, without those of inner functions and loops."""
    yield body
    for one in body:
        if isinstance(one, ast.If | ast.With | ast.AsyncWith | ast.Try):
            for part in ("body", "orelse", "finalbody"):
                yield from _blocks(getattr(one, part, []))


def _chosen(tree: ast.Module, block: list[ast.stmt]) -> Iterator[WeightsByTest]:
    for at, loop in enumerate(block):
        loads = [one for one in block[at + 1 :] if "load_state_dict" in map(_name, calls_in(one))]
        if not isinstance(loop, _LOOPS) or not loads:
            continue
        for branch, figure in _branches(loop):
            made = _made(loop, figure, branch.lineno)
            samples = None if made is None else _samples(made)
            if made is None or samples is None:
                continue
            for call in _later(tree, loop, loads[0]):
                if _name(call) == _name(made) and _samples(call) == samples:
                    yield WeightsByTest(figure, min(samples), branch.test, call)
                    break


def _branches(loop: ast.stmt) -> Iterator[tuple[ast.If, str]]:
    """Yield the branches of a loop that keep weights at a new best figure, with the name of the figure."""
    for one in _inside(loop):
        if not isinstance(one, ast.If) or not isinstance(one.test, ast.Compare) or len(one.test.ops) != 1:
            continue
        if not isinstance(one.test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
            continue
        sides = [one.test.left, one.test.comparators[0]]
        best = [side for side in sides if isinstance(side, ast.Name) and words_of(side.id) & _BEST]
        figures = [side for side in sides if isinstance(side, ast.Name) and side not in best]
        stored = {name for part in ast.walk(one) if isinstance(part, ast.stmt) for target, _ in pairs_of(part)
                  for name in stored_in(target)}  # fmt: skip
        keeps = any(_name(call) in _KEEPING for part in one.body for call in calls_in(part))
        if len(best) == len(figures) == 1 and keeps and best[0].id in stored:
            yield one, figures[0].id


def _made(loop: ast.stmt, figure: str, before: int) -> ast.Call | None:
    """Return the call that a figure is the result of; None if another statement gives it a value, too."""
    made = [
        value
        for one in _inside(loop)
        if isinstance(one, ast.stmt)
        for target, value in pairs_of(one)
        if figure in stored_in(target)
    ]
    call = made[0] if len(made) == 1 else None
    return call if isinstance(call, ast.Call) and call.lineno < before else None


def _samples(call: ast.Call) -> frozenset[str] | None:
    """Return the arguments with the name of a test; None without one, or with those of another part."""
    given = [ast.unparse(one) for one in given_to(call)]
    found = frozenset(one for one in given if words_of(one) & TEST and not words_of(one) & OTHER)
    return found if found and not any(words_of(one) & OTHER for one in given) else None


def _later(tree: ast.Module, loop: ast.stmt, load: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of the file behind a load that no loop around them repeats."""
    inner = {id(call) for one in ast.walk(tree) if isinstance(one, _LOOPS) for call in calls_in(one)}
    for call in calls_in(tree):
        if call.lineno > load.lineno and id(call) not in inner and call.lineno > (loop.end_lineno or 0):
            yield call


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _INNER):
            yield from _inside(child)


def _name(call: ast.Call) -> str:
    return last_name(call.func)
