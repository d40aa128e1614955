"""Figures that a program calls those of a test, by the statements around the call of an evaluation.

The value of the call is followed by its variables, to the printed text that stands before it, or to a variable with
the word in its name. Where the way mentions a part of the data with the word, nothing is claimed.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from truestep import source
from truestep.events import Site

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_MOST = 12
"""Statements after the call."""
_PRINTING = frozenset({"print", "info", "debug"})
_WORD = re.compile(r"[^\W_\d]+")


class OfTest(NamedTuple):
    """A figure of a test.

    Attributes:
        name: its name, or the text before it.
        place: the call.
    """

    name: str
    place: Site


@functools.lru_cache(maxsize=512)
def figure_of_test(path: str, line: int) -> OfTest | None:
    """Return the figure of a test that the statement at a line begins to compute; None without one.

    Args:
        path: a file.
        line: the line of a call in an evaluation, or of one that leads to it.
    """
    tree = source.parsed(path)
    found = None if tree is None else _statement(tree, line)
    if found is None:
        return None
    statement, later, looped = found
    if looped or _reads_test(statement):
        return None
    place = Site(path, statement.lineno, statement.col_offset, statement.end_lineno or 0, statement.end_col_offset or 0)
    known: set[str] = set()
    for one in (statement, *later[:_MOST]):
        if isinstance(one, (*_LOOPS, *_FUNCTIONS)):
            return None
        if one is not statement and known.isdisjoint(_read(one)):
            if known & _stored(one):
                return None
            if _names_test(one):
                return None
            continue
        if one is not statement and _reads_test(one):
            return None
        text = next(_labels(one, known, itself=one is statement), "")
        if text:
            return OfTest(text, place)
        if isinstance(one, ast.Assign | ast.AnnAssign):
            known |= _stored(one)
            named = next((name for name in sorted(_stored(one)) if _is_test(name)), "")
            if named:
                return OfTest(named, place)
    return None


def _statement(tree: ast.AST, line: int) -> tuple[ast.stmt, list[ast.stmt], bool] | None:
    """Return the innermost simple statement at a line, those that follow it, and True if it is in a loop."""
    blocks: list[tuple[list[ast.stmt], int]] = []
    node, looped = tree, False
    while True:
        inside = None
        for name in ("body", "orelse", "finalbody", "handlers"):
            block: list[ast.stmt] = getattr(node, name, None) or []
            for at, one in enumerate(block if isinstance(block, list) else ()):
                if one.lineno <= line <= (one.end_lineno or 0):
                    inside = one
                    blocks.append((block, at))
        if inside is None:
            break
        node = inside
        if isinstance(node, _FUNCTIONS):
            blocks, looped = [], False
        looped = looped or isinstance(node, _LOOPS)
    if not blocks or not isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
        return None
    later = [one for block, at in reversed(blocks) for one in block[at + 1 :]]
    return node, later, looped


def _labels(node: ast.stmt, known: set[str], *, itself: bool) -> Iterator[str]:
    """Yield the texts with the word that stand before a followed value, or before a call in the statement itself."""
    for one in source.walk(node):
        parts = one.values if isinstance(one, ast.JoinedStr) else one.args if isinstance(one, ast.Call) else ()
        text = ""
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                text = f"{text} {part.value}"
            elif _is_test(text):
                called = itself and any(isinstance(inner, ast.Call) for inner in source.walk(part))
                if called or known & _read(part):
                    yield " ".join(text.split())


def _is_test(text: str) -> bool:
    words = {word.lower() for word in _WORD.findall(text)}
    return "test" in words and words.isdisjoint({"val", "valid", "validation", "dev", "train", "training", "best"})


def _reads_test(node: ast.AST) -> bool:
    """Return True if an expression reads a variable, an attribute or a key with the word; texts to print are none."""
    shown = {part for one in source.walk(node) for part in _shown(one)}
    for one in source.walk(node):
        if isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load):
            name = one.id if isinstance(one, ast.Name) else one.attr
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and one not in shown:
            name = one.value if one.value.isidentifier() else ""
        else:
            continue
        if "test" in name.lower():
            return True
    return False


def _shown(node: ast.AST) -> list[ast.expr]:
    """Return the parts of a text, or the arguments of a function that prints them."""
    match node:
        case ast.JoinedStr(values=values):
            return values
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if name in _PRINTING:
            return args
    return []


def _names_test(node: ast.AST) -> bool:
    names = (one.id for one in source.walk(node) if isinstance(one, ast.Name))
    return any("test" in name.lower() for name in names)


def _read(node: ast.AST) -> set[str]:
    return {one.id for one in source.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in source.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
