"""Read the source of a schedule: is its length a number of epochs, by the name of the variable?"""

from __future__ import annotations

import ast
import functools

from truestep import source
from truestep.events import Site

_LENGTHS = ("T_max", "total_iters", "milestones")
_OF_BATCHES = ("len", "batch", "step", "iter", "loader")


@functools.lru_cache(maxsize=64)
def is_of_epochs(site: Site | None) -> bool:
    """Return True if the length in a call is the value of a variable such as ``epochs`` or ``args.num_epochs``."""
    tree = source.parsed(site.path) if site is not None and site.column >= 0 else None
    if tree is None or site is None:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (site.line, site.column):
            if (node.end_lineno, node.end_col_offset) == (site.end_line, site.end_column):
                lengths = [keyword.value for keyword in node.keywords if keyword.arg in _LENGTHS]
                return any(map(_counts_epochs, lengths or node.args[1:2]))
    return False


def _counts_epochs(length: ast.expr) -> bool:
    names = [
        one.attr if isinstance(one, ast.Attribute) else str(one.value) if isinstance(one, ast.Constant) else one.id
        for one in ast.walk(length)
        if isinstance(one, ast.Name | ast.Attribute) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
    ]
    words = " ".join(names).lower()
    return "epoch" in words and not any(word in words for word in _OF_BATCHES)
