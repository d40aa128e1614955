"""Read the source around the construction of an optimizer: does the same loop make one pass over slices of the data?"""

from __future__ import annotations

import ast
import functools

from truestep import source
from truestep.events import Site

_SLICES = ("split", "chunk", "batch", "batches", "array_split")
_WITH_STEP = 3
"""Arguments of ``range`` with a step, as in ``range(0, len(x), batch_size)``."""
_Loop = ast.For | ast.AsyncFor


@functools.lru_cache(maxsize=64)
def lasts_one_pass(site: Site) -> bool:
    """Return True if the innermost loop around a line has a loop over slices in its body, after the line.

    An optimizer that is built there lasts for one pass over the data; with ``range(steps)`` in its place, it may be
    one for each of several tasks.
    """
    tree = source.parsed(site.path)
    around = [
        node
        for node in (source.walk(tree) if tree is not None else ())
        if isinstance(node, _Loop) and node.body[0].lineno <= site.line <= (node.end_lineno or 0)
    ]
    if not around:
        return False
    after = [node for node in around[-1].body if isinstance(node, _Loop) and node.lineno > site.line]
    return len(after) == 1 and _is_over_slices(after[0].iter)


def _is_over_slices(iterable: ast.expr) -> bool:
    for node in source.walk(iterable):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _SLICES or (name == "range" and len(node.args) == _WITH_STEP):
                return True
    return False
