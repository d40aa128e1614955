"""Views that a transpose was intended for: sizes in another order, and the numbers where they were."""

from __future__ import annotations

from itertools import permutations
from typing import Any

_VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")
_CHOICE = "IndexBackward0"
_OF_CLASSES = ("nll_loss", "cross_entropy")
_MOST = 5
Shape = tuple[int, ...]


def scrambles(before: Shape, after: Shape) -> bool:
    """Return True if a view has the sizes of a transposed tensor, also with dimensions merged or split.

    >>> scrambles((16, 9, 4), (16, 4, 9)), scrambles((16, 9, 4), (144, 4)), scrambles((8, 2, 5, 3), (8, 5, 6))
    (True, False, True)
    >>> scrambles((16, 9, 4), (16, 36)), scrambles((16, 12, 5), (16, 4, 3, 5)), scrambles((16, 4, 4), (16, 4, 4))
    (False, False, False)
    >>> scrambles((16, 9, 8), (16, 2, 9, 4)), scrambles((16, 9, 8), (16, 9, 2, 4)), scrambles((16, 9, 8), (16, 8, 3, 3))
    (True, False, True)
    """
    source, result = tuple(size for size in before if size > 1), tuple(size for size in after if size > 1)
    if len(result) > len(source):
        source, result = result, source
    if not 2 <= len(result) <= len(source) <= _MOST or source == result or _merges(source, result):
        return False
    return any(_merges(order, result) for order in set(permutations(source)))


def viewed(node: Any, kind: str, shape: Shape) -> tuple[Shape, Shape] | None:
    """Return the shapes before and after a view of the input of a loss that mixes its positions; None without one.

    The view may be followed by a choice of rows, as of the positions that count.
    """
    if node is not None and node.name() == _CHOICE and tuple(node._saved_self_sym_sizes)[1:] == shape[1:]:
        node, shape = node.next_functions[0][0], tuple(node._saved_self_sym_sizes)
    if node is None or node.name() not in _VIEWS:
        return None
    before = tuple(node._saved_self_sym_sizes)
    if any(type(size) is not int for size in (*before, *shape)):
        return None
    inner = node.next_functions[0][0]
    if inner is not None and inner.name() in _VIEWS:
        if tuple(inner._saved_self_sym_sizes)[-1:] != before[-1:]:
            return None
    if scrambles(before, shape) and len(before) == len(shape):
        return before, shape
    crossed = kind in _OF_CLASSES and len(shape) == 2 < len(before) and before[1] == shape[1] != before[-1]
    return (before, shape) if crossed and shape[1] > 1 and before[-1] > 1 else None


def _merges(source: Shape, result: Shape) -> bool:
    """Return True if neighbouring sizes of one shape multiply to those of another, in its order."""
    at, product = 0, 1
    for size in source:
        product *= size
        if at < len(result) and product == result[at]:
            at, product = at + 1, 1
    return at == len(result) and product == 1
