"""Masks that the training passes to a function of the program, and that the function never reads."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.context.values import has_values
from truestep.probes.unread.statements import scope_of, statements_of
from truestep.seams.code.functions import code_of

_SEE_ALL = {"locals", "vars", "eval", "exec"}
_MASK = re.compile(r"mask|padding|(^|_)pad(ded)?($|_)")
_LARGEST = 1 << 22


class Call(NamedTuple):
    """A call of a function by its name."""

    function: str
    arguments: tuple[tuple[int | str, str], ...]
    """Position or keyword of each argument that is a variable, and the variable."""


@functools.lru_cache(maxsize=256)
def calls(code: CodeType) -> tuple[Call, ...]:
    """Return the calls with variables as arguments in a function, or in the main file outside of functions."""
    scope, found = scope_of(code), []
    statements = statements_of(scope) if scope is not None else ()
    parts = (part for one, _, _ in statements for part in ast.iter_child_nodes(one) if isinstance(part, ast.expr))
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            plain = not any(isinstance(one, ast.Starred) for one in node.args)
            given = [*enumerate(node.args if plain else ()), *((one.arg, one.value) for one in node.keywords)]
            variables = tuple((key, one.id) for key, one in given if key is not None and isinstance(one, ast.Name))
            if variables:
                found.append(Call(node.func.id, variables))
    return tuple(found)


@functools.lru_cache(maxsize=256)
def unread_masks(code: CodeType) -> dict[str, Site]:
    """Return the parameters of a function that are called a mask and that its source never reads, with their places."""
    tree = source.parsed(code.co_filename)
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and code.co_firstlineno in _lines(node):
            read = {one.id for one in source.walk(node) if isinstance(one, ast.Name)}
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if node.name != code.co_name or not _SEE_ALL.isdisjoint(read) or _is_stub(node):
                return {}
            return {
                one.arg: Site(
                    code.co_filename,
                    one.lineno,
                    one.col_offset,
                    one.end_lineno or 0,
                    one.end_col_offset or 0,
                    node.name,
                )
                for one in arguments
                if one.arg not in read and _MASK.search(one.arg.lower())
            }
    return {}


def passed(call: Call, names: dict[str, Any], torch: Any) -> list[tuple[str, Site]]:
    """Return the masks that a call passes in vain: names of the parameters, and their places.

    Args:
        call: a call in the source of a frame.
        names: variables of that frame.
        torch: the module.
    """
    function = names.get(call.function)
    if type(function) is not FunctionType or function.__name__ != call.function or hasattr(function, "__wrapped__"):
        return []
    unread = unread_masks(code_of(function))
    if not unread:
        return []
    parameters = list(inspect.signature(function).parameters)
    found = []
    for key, variable in call.arguments:
        name = key if isinstance(key, str) else parameters[key] if key < len(parameters) else ""
        if name in unread and _is_mask(names.get(variable), torch):
            found.append((name, unread[name]))
    return found


def _is_mask(value: Any, torch: Any) -> bool:
    """Return True for a tensor of zeros and ones, or of false and true, that has both."""
    if (
        type(value) is not torch.Tensor
        or not value.is_cpu
        or not 1 < value.numel() <= _LARGEST
        or not has_values(value)
    ):
        return False
    if value.dtype is torch.bool:
        return bool(value.any()) and not bool(value.all())
    zeros, ones = value == 0, value == 1
    return bool((zeros | ones).all()) and bool(zeros.any()) and bool(ones.any())


def _lines(node: ast.FunctionDef) -> set[int]:
    return {node.lineno, *(one.lineno for one in node.decorator_list)}


def _is_stub(node: ast.FunctionDef) -> bool:
    """Return True for a function that only raises, or does nothing."""
    return all(isinstance(one, ast.Expr | ast.Pass | ast.Raise) for one in node.body)
