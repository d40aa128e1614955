"""Roles of values in an evaluation, predictions or labels, and the figures that have names, from the syntax."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from truestep.syntax import Binding, Call, Context, Kind, Program, dotted, names_in, part_of

_PREDICTED = re.compile(r"(?:^|_)(?:pred\w*|outputs?|logits?|y_?hat|guess\w*|forecasts?|estimates?)(?:_|$)")
_ACTUAL = re.compile(r"(?:^|_)(?:targets?|labels?|actuals?|truths?|gt|true|expected|gold)(?:_|$)|^y$")
_TEXTS = (ast.Dict, ast.JoinedStr)
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """An expression that has the name of a figure: of a variable, a key, a function or the text before it."""

    name: str
    value: ast.expr
    context: Context
    order: int


def figures(program: Program, pattern: re.Pattern[str]) -> Iterator[Figure]:
    """Yield the expressions with names that match a pattern."""
    for scope in program.scopes:
        for key, bindings in scope.bindings.items():
            named = _is_named(key, pattern)
            for one in bindings:
                if named and one.how == "=" and (value := part_of(one)) is not None:
                    yield Figure(key.rpartition(".")[2], value, one.context, one.order)
                if type(one.value) in _TEXTS and one.how == "=" and one.value is not None:
                    yield from _entries(one.value, one.context, one.order, pattern)
        for value, context, order in scope.returns:
            name = scope.name.rpartition(".")[2]
            if pattern.search(name.lower()):
                yield Figure(name, value, context, order)
            yield from _entries(value, context, order, pattern)
    for call in program.method("print", "info", "write", "log", "append"):
        for value in call.arguments():
            yield from _entries(value, call.context, call.order, pattern)


@functools.lru_cache(maxsize=65536)
def _is_named(key: str, pattern: re.Pattern[str]) -> bool:
    return pattern.search(key.rpartition(".")[2].lower()) is not None


def _entries(value: ast.expr, context: Context, order: int, pattern: re.Pattern[str]) -> Iterator[Figure]:
    """Yield the entries of a dict that is written out, and the values in a text with the word before each."""
    if isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and pattern.search(key.value.lower()):
                yield Figure(key.value, inner, context, order)
    elif isinstance(value, ast.JoinedStr):
        for text, part in zip(value.values, value.values[1:], strict=False):
            if isinstance(text, ast.Constant) and isinstance(part, ast.FormattedValue):
                words = re.findall(r"\w+", str(text.value))
                if words and pattern.search(words[-1].lower()):
                    yield Figure(words[-1], part.value, context, order)


def predicted(node: ast.expr, context: Context, order: int, program: Program) -> bool | None:
    """Return True for predictions, False for labels; None if an expression may be either, or both."""
    return _of_value(node, context, order, program, 0)


def _of_value(node: ast.expr, context: Context, order: int, program: Program, depth: int) -> bool | None:
    for one in ast.walk(node):
        call = program.call_at.get(one)
        if call is not None and not call.name and _is_model(call, program):
            return True
    roles = {_role(name, context, order, program, depth) for name in values_in(node)} - {None}
    return roles.pop() if len(roles) == 1 else None


def _is_model(call: Call, program: Program) -> bool:
    return program.kinds.is_a(call.node.func, Kind.MODEL, call.context, call.order)


def values_in(node: ast.AST) -> Iterator[str]:
    """Yield the names of values in an expression, without those of functions and methods."""
    if isinstance(node, ast.Call):
        parts = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts += [*node.args, *(word.value for word in node.keywords)]
    elif text := dotted(node):
        yield text
        return
    else:
        parts = [*ast.iter_child_nodes(node)]  # type: ignore[list-item]
    for part in parts:
        yield from values_in(part)


def texts_in(node: ast.expr) -> Iterator[str]:
    """Yield the names in an expression, and the texts that it is read by."""
    yield from names_in(node)
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _role(name: str, context: Context, order: int, program: Program, depth: int) -> bool | None:
    found = program.values.only(name, context, order) if "." not in name else None
    if found is not None and depth < _DEEPEST:
        made = _of_binding(found, program, depth)
        if made is not None:
            return made
    last = name.rpartition(".")[2].lower()
    roles = {role for role, pattern in ((True, _PREDICTED), (False, _ACTUAL)) if pattern.search(last)}
    return roles.pop() if len(roles) == 1 else None


def _of_binding(one: Binding, program: Program, depth: int) -> bool | None:
    """Return the role of the value of a name: the result of a model is a prediction."""
    value = part_of(one) if one.how == "=" else None
    if one.how == "for" and isinstance(one.value, ast.Call) and dotted(one.value.func) == "zip" and one.index:
        place = one.index[0]
        value = one.value.args[place] if 0 <= place < len(one.value.args) else None
    return None if value is None else _of_value(value, one.context, one.order, program, depth + 1)
