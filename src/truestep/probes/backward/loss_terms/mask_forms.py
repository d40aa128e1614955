"""Operations of a tape that replace positions of a tensor, and positions as they lie behind views of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from truestep.probes.backward.origin import RESHAPING, shape_of
from truestep.probes.context.values import has_values, saved

FILL, WHERE, PRODUCT, PUT = "MaskedFillBackward0", "WhereBackward0", "MulBackward0", "IndexPutBackward0"
FORMS = {FILL: "fill", WHERE: "where", PRODUCT: "product", PUT: "put"}
EXP = "ExpBackward0"
VIEWS = RESHAPING | {"ExpandBackward0"}
_COPIES = ("CloneBackward0", "ToCopyBackward0", "AliasBackward0")
_MATRICES = ("BmmBackward0", "MmBackward0")
_MOST_VALUES = 1 << 26


def masked_by(torch: Any, node: Any) -> Any:
    """Return the positions that an operation replaces by constants, in the shape of its mask; None for others."""
    name, follows = str(node.name()), [following is not None for following, _ in node.next_functions]
    if follows.count(True) != 1:
        return None  # a fill with a value that is learned, for one
    if name == FILL:
        return _of_booleans(torch, saved(node, "mask"))
    if name == WHERE:
        kept = _of_booleans(torch, saved(node, "condition"))
        return None if kept is None else (~kept if follows[0] else kept)
    if name == PUT:
        return _put(torch, node) if follows[0] else None
    if name != PRODUCT or _is_leaf(node):
        return None  # weights times a mask are pruned
    factor = _factor(torch, node, follows.index(True))
    if factor is None or not 1 < factor.numel() <= _MOST_VALUES:
        return None
    zero = factor == 0
    return zero if bool((zero | (factor == 1)).all()) and bool(zero.any()) else None


def is_zero_behind(torch: Any, node: Any, at: int, masked: Any, path: Sequence[Any], *, log: bool) -> bool:
    """Return True if an operation takes no masked weight: it sets it to zero, or multiplies it by a zero.

    The operation uses weights of a softmax as its input of number ``at``. The path has the operations between them,
    which leave each weight where it is, or change the shape. Logarithms of weights are set to zero by masks only: the
    zeros of a target leave the sum of the others below one.
    """
    name = str(node.name())
    log = log and all(one.name() != EXP for one in path)
    if name in _MATRICES and not log:
        return _is_zero_in_matrices(torch, node, at, masked, path)
    if name == PRODUCT and not log:
        factor = _factor(torch, node, at)
        again = None if factor is None else factor == 0
    else:
        again = masked_by(torch, node) if name in FORMS else None
    if again is None or not bool(again.any()):
        return False
    behind = carried(masked, path)
    again = None if behind is None else expanded(again, shape_of(node))
    return again is not None and bool((again | ~behind).all())


def _is_zero_in_matrices(torch: Any, node: Any, at: int, masked: Any, path: Sequence[Any]) -> bool:
    """Return True if a product of matrices multiplies masked weights by rows of zeros."""
    other = saved(node, "self" if at else "mat2")
    if type(other) is not torch.Tensor or not has_values(other) or other.numel() > _MOST_VALUES:
        return False
    across = -2 if at else -1
    zero = (other == 0).all(across)
    if not bool(zero.any()):
        return False
    behind = carried(masked, path)
    return behind is not None and bool((zero | ~behind.any(-1 if at else -2)).all())


def carried(masked: Any, path: Sequence[Any]) -> Any:
    """Return positions as they lie behind operations that change the shape only; None if it is not known."""
    for node in path:
        name, shape = str(node.name()), shape_of(node)
        if name == "TransposeBackward0":
            masked = masked.transpose(signed(node._saved_dim0), signed(node._saved_dim1))
        elif name == "PermuteBackward0":
            masked = masked.permute([signed(dim) for dim in node._saved_dims])
        elif name == "TBackward0":
            masked = masked.t()
        elif name in RESHAPING and name not in _COPIES:
            if masked.numel() > _MOST_VALUES or masked.numel() != math.prod(shape):
                return None
            masked = masked.reshape(shape)
        else:
            masked = expanded(masked, shape)
        if masked is None or tuple(masked.shape) != shape:
            return None
    return masked


def expanded(mask: Any, shape: Any) -> Any:
    """Return a mask in a shape; None if it does not fit."""
    try:
        return mask.expand(shape)
    except RuntimeError:
        return None


def signed(dim: int) -> int:
    """Return a dimension that an operation has saved, as a negative number if it was one."""
    return dim if dim < 1 << 32 else dim - (1 << 64)


def _is_leaf(node: Any) -> bool:
    return any(following is not None and not following.next_functions for following, _ in node.next_functions)


def _factor(torch: Any, node: Any, at: int) -> Any:
    """Return the factor with which a product multiplies one of its inputs; None if it is not known."""
    factor = saved(node, "self" if at else "other")
    return factor if type(factor) is torch.Tensor and has_values(factor) else None


def _put(torch: Any, node: Any) -> Any:
    """Return the positions that an assignment to ``scores[mask]`` replaces."""
    indices = saved(node, "indices")
    if node._saved_accumulate or not isinstance(indices, tuple | list):
        return None
    given = [one for one in indices if one is not None]
    mask = _of_booleans(torch, given[0]) if len(given) == 1 else None
    if mask is None or indices[-1] is None:
        return None
    behind = len(shape_of(node)) - len(indices) + 1 - mask.dim()
    return mask.reshape(*mask.shape, *[1] * behind) if behind >= 0 else None


def _of_booleans(torch: Any, value: Any) -> Any:
    usable = type(value) is torch.Tensor and value.dtype is torch.bool and has_values(value)
    return value if usable else None
