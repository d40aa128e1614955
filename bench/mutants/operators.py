"""Operators: each plants one mistake at every place of a program where it can be made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from source import Edit, Source

Found = Iterator[tuple[ast.expr | ast.stmt, list[Edit]]]
"""The places of a mistake, each with the edits that plant it."""
Finder = Callable[[Source], Found]


@dataclass(frozen=True)
class Operator:
    """A mistake that people make."""

    name: str
    mistake: str
    """The mistake, in one line."""
    find: Finder
    silent: bool
    """True if the mistake costs time, memory or trust, and changes no number."""


@dataclass(frozen=True)
class Mutant:
    """A program with one mistake."""

    operator: str
    line: int
    """Line of the mistake in the program before it was planted."""
    scope: tuple[int, int]
    """First and last line of the outermost loop around it, or of the function: where its cause can be named."""
    text: str


OPERATORS: dict[str, Operator] = {}


def operator(name: str, silent: bool = False) -> Callable[[Finder], Finder]:
    """Return a decorator that registers an operator; its docstring is the mistake."""

    def decorate(find: Finder) -> Finder:
        register(name, (find.__doc__ or "").strip().splitlines()[0], find, silent)
        return find

    return decorate


def register(name: str, mistake: str, find: Finder, silent: bool = False) -> None:
    """Register an operator."""
    assert name not in OPERATORS, f"two operators are named {name}"
    OPERATORS[name] = Operator(name, mistake, find, silent)


def mutants(source: Source, name: str) -> Iterator[Mutant]:
    """Yield the mutants of a program by one operator, those that are valid Python."""
    seen = {source.text}
    for node, edits in OPERATORS[name].find(source):
        text = source.edited(edits)
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        if text not in seen:
            seen.add(text)
            yield Mutant(name, node.lineno, _scope(source, node), text)


def _scope(source: Source, node: ast.AST) -> tuple[int, int]:
    outermost = source.statement(node)
    around: ast.AST = outermost
    while around in source.parents and not isinstance(
        source.parents[around], ast.FunctionDef | ast.ClassDef | ast.Module
    ):
        around = source.parents[around]
        outermost = around if isinstance(around, ast.stmt) else outermost
    parent = source.parents.get(around)
    if isinstance(parent, ast.FunctionDef):
        outermost = parent
    return outermost.lineno, outermost.end_lineno or outermost.lineno
