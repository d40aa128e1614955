"""Formulas of figures in functions that ran, and transforms of parts, read from the source of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from truestep import source
from truestep.events import EvaluationRan, Site
from truestep.findings import Confidence
from truestep.rules._syntax.data.figures import wrong_formulas
from truestep.rules._syntax.data.parts import lost_in_training
from truestep.rules._syntax.data.sums import sums_of_all_reports
from truestep.rules._syntax.models.signs import exchanged_hinges
from truestep.syntax import Program, Suspicion, dotted

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def wrong_formulas_of(functions: list[EvaluationRan], classes: int) -> Iterator[tuple[Site, Suspicion]]:
    """Yield the figures that their expression cannot be, each with its place.

    Args:
        functions: those that an evaluation was called in, directly or by another function.
        classes: number of classes of the loss of the training; 0 if it is unknown.
    """
    for path in {one.path: None for one in functions}:
        program = program_of(path)
        if program is None:
            continue
        tree = program.tree
        ran = _ran(tree, {one.first for one in functions if one.path == path})
        for found in wrong_formulas(program, classes):
            around = _around(tree, found.node)
            if found.confidence is Confidence.HIGH and (0 if around is None else around.lineno) in ran:
                yield _site(path, found.node, around), found


def sums_in_training(steps: Iterable[Site]) -> Iterator[tuple[Site, Suspicion]]:
    """Yield the sums that go on from report to report, in functions that train or call one that does.

    Args:
        steps: lines of optimizer steps.
    """
    lines: dict[str, set[int]] = {}
    for step in steps:
        lines.setdefault(step.path, set()).add(step.line)
    for path, of_steps in lines.items():
        program = program_of(path)
        if program is None:
            continue
        tree = program.tree
        for found in sums_of_all_reports(program):
            around = _around(tree, found.node)
            if _trains(tree if around is None else around, tree, of_steps):
                yield _site(path, found.node, around), found


def hinges_in_training(steps: Iterable[Site]) -> Iterator[tuple[Site, Suspicion]]:
    """Yield the hinges with exchanged pairs in the files that train.

    Args:
        steps: lines of optimizer steps.
    """
    for path in {step.path: None for step in steps}:
        program = program_of(path)
        if program is None:
            continue
        for found in exchanged_hinges(program):
            yield site_of(path, program.tree, found.node), found


def lost_transforms(paths: Iterable[str]) -> Iterator[tuple[Site, Suspicion, list[tuple[Site, str]]]]:
    """Yield the transforms that an assignment takes from the training too, with its place and others of the file.

    Args:
        paths: files that build the loaders.
    """
    for path in paths:
        program = program_of(path)
        if program is None:
            continue
        for found in lost_in_training(program):
            others = [(site_of(path, program.tree, node), label) for node, label in found.related]
            yield site_of(path, program.tree, found.node), found, others


def program_of(path: str) -> Program | None:
    """Return the program of a file; None if its source cannot be read."""
    tree = source.parsed(path)
    return None if tree is None else Program(text_of(path), tree)


def text_of(path: str) -> str:
    """Return the text of a file; an empty string if it cannot be read."""
    return "".join(f"{line}\n" for line in source.read(path).lines)


def site_of(path: str, tree: ast.Module, node: ast.AST) -> Site:
    """Return the place of a node of the tree of a file."""
    return _site(path, node, _around(tree, node))


def scope_around(tree: ast.Module, node: ast.AST) -> int:
    """Return the line of the innermost function around a node; 0 at the level of the module."""
    around = _around(tree, node)
    return 0 if around is None else around.lineno


def _trains(scope: ast.AST, tree: ast.Module, steps: set[int]) -> bool:
    """Return True if a scope has a step in it, or calls a function or method of the file that has."""
    functions = [node for node in source.walk(tree) if isinstance(node, _FUNCTIONS)]
    holding = [node for node in functions if any(node.lineno <= line <= (node.end_lineno or 0) for line in steps)]
    called = {dotted(node.func).rpartition(".")[2] for node in source.walk(scope) if isinstance(node, ast.Call)}
    return scope in holding or not holding or any(node.name in called for node in holding)


def _ran(tree: ast.Module, called: set[int]) -> set[int]:
    """Return the lines of the functions that called an evaluation, and of those of the file that these call by name."""
    functions = [node for node in source.walk(tree) if isinstance(node, _FUNCTIONS)]
    bodies: list[ast.AST] = [node for node in functions if node.lineno in called]
    if 0 in called:
        bodies += [node for node in tree.body if not isinstance(node, (*_FUNCTIONS, ast.ClassDef))]
    calls = (node for body in bodies for node in source.walk(body) if isinstance(node, ast.Call))
    names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    return called | {node.lineno for node in functions if node.name in names}


def _around(tree: ast.Module, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the innermost function around a node; None at the level of the module."""
    above = source.parents(tree)
    while node in above:
        node = above[node]
        if isinstance(node, _FUNCTIONS):
            return node
    return None


def _site(path: str, node: ast.AST, around: ast.FunctionDef | ast.AsyncFunctionDef | None) -> Site:
    line = getattr(node, "lineno", 1)
    end_line, end_column = getattr(node, "end_lineno", None) or line, getattr(node, "end_col_offset", None)
    function = "<module>" if around is None else around.name
    return Site(
        path, line, getattr(node, "col_offset", -1), end_line, -1 if end_column is None else end_column, function
    )
