"""Read the source of a schedule: is its length a number of epochs, by the name of the variable?"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from types import CellType, FunctionType
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.seams.code.functions import code_of

_LENGTHS = ("T_max", "total_iters", "milestones")
_OF_BATCHES = ("len", "batch", "step", "iter", "loader")
_EMPTY = CellType()  # equal to cells without a value only


@functools.lru_cache(maxsize=64)
def is_of_epochs(site: Site | None) -> bool:
    """Return True if the length in a call is the value of a variable such as ``epochs`` or ``args.num_epochs``."""
    tree = source.parsed(site.path) if site is not None and site.column >= 0 else None
    if tree is None or site is None:
        return False
    for node in source.walk(tree):
        if isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (site.line, site.column):
            if (node.end_lineno, node.end_col_offset) == (site.end_line, site.end_column):
                lengths = [keyword.value for keyword in node.keywords if keyword.arg in _LENGTHS]
                return any(map(_counts_epochs, lengths or node.args[1:2]))
    return False


def _counts_epochs(length: ast.expr) -> bool:
    names = [
        one.attr if isinstance(one, ast.Attribute) else str(one.value) if isinstance(one, ast.Constant) else one.id
        for one in source.walk(length)
        if isinstance(one, ast.Name | ast.Attribute) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
    ]
    words = " ".join(names).lower()
    return "epoch" in words and not any(word in words for word in _OF_BATCHES)


def counts_read(functions: Iterable[Any]) -> tuple[int, ...]:
    """Return the whole numbers in variables that the functions of a schedule read; none if they call ``len``.

    >>> warm_up, total = 20, 240
    >>> counts_read([lambda step: min(step / warm_up, 1 - step / total)])
    (20, 240)
    """
    own = [one for one in functions if isinstance(one, FunctionType)]
    if any("len" in code_of(function).co_names for function in own):
        return ()
    return tuple(sorted({value for function in own for value in _read_by(function) if value.__class__ is int}))


def _read_by(function: FunctionType) -> list[Any]:
    """Return the values that a function reads from outside: cells, globals and defaults of its arguments."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY]
    read = [function.__globals__[name] for name in code_of(function).co_names if name in function.__globals__]
    return [*cells, *read, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
