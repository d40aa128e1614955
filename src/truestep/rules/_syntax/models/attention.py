"""Softmaxes and norms of a dimension, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from truestep.events import Site
from truestep.rules._formulas import program_of, site_of

_NAMES = ("softmax", "log_softmax", "Softmax", "LogSoftmax")
_METHODS = ("softmax", "log_softmax")


def softmaxes_over(files: Iterable[str], dim: int) -> Iterator[Site]:
    """Yield the lines of files with a softmax over a dimension, written as a number."""
    for path in files:
        program = program_of(path)
        if program is None:
            continue
        for node in ast.walk(program.tree):
            if isinstance(node, ast.Call) and _dimension(node) == dim:
                yield site_of(path, program.tree, node)


def norms_over(files: Iterable[str], dim: int, rank: int) -> Iterator[Site]:
    """Yield the lines of files with a ``normalize`` over a dimension of tensors, written as a number or by default."""
    for path in files:
        program = program_of(path)
        if program is None:
            continue
        for node in ast.walk(program.tree):
            if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] != "normalize":
                continue
            given = [one.value for one in node.keywords if one.arg == "dim"] + node.args[2:3]
            try:
                value = ast.literal_eval(given[0]) if given else 1
            except ValueError:
                continue
            if type(value) is int and value % rank == dim:
                yield site_of(path, program.tree, node)


def _dimension(call: ast.Call) -> int | None:
    """Return the dimension that a softmax gets; None if it is not a number, and for other calls."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in _NAMES:
        return None
    given = [one.value for one in call.keywords if one.arg == "dim"]
    at = int(name in _METHODS)
    if name in _METHODS and isinstance(function, ast.Attribute) and not _is_module(function.value):
        at = 0  # a method of the scores
    given += call.args[at : at + 1]
    try:
        value = ast.literal_eval(given[0]) if given else None
    except ValueError:
        return None
    return value if type(value) is int else None


def _is_module(node: ast.expr) -> bool:
    return ast.unparse(node) in ("F", "torch", "nn.functional", "functional", "torch.nn.functional", "tf")
