"""Softmax operations in the terms of a loss that pick one, or a few, of many: as of labels, or of positive pairs.

A logarithm of a softmax is one if a label picks from it, or a target with few values. A logarithm of a sum of
exponentials is one if the loss has another similarity with the opposite sign beside it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.probes.backward.origin import RESHAPING, SELECTING, shape_of
from truestep.probes.backward.signs import factor
from truestep.probes.context.values import has_values, saved
from truestep.probes.forward.losses.followed_targets import kind_of

_SHARES = frozenset({"LogSoftmax", "Logsumexp", "Exp"})
_CLAMPS = frozenset({"Clamp", "ClampMin"})
_TERMS = frozenset(
    {
        "NllLoss", "NllLoss2D", "Add", "Sub", "Rsub", "Neg", "Mean", "Sum", "Mul", "Div", "Log", "Gather", "Stack",
        "Cat", "MaskedFill", "Where", "Diagonal",
    }
) | _CLAMPS  # fmt: skip
"""Operations between a loss and the softmax."""
_CHAIN = frozenset(
    {"Neg", "Add", "Sub", "Rsub", "Mul", "Div", "Mean", "Sum", "Gather", "Diagonal", "Exp", "MaskedFill", "Where"}
)
"""Operations between a term of a loss and its similarity."""
_ENDS = frozenset({"Mm", "Bmm", "Mul", "Log", "Logsumexp"})
PRODUCTS = frozenset({"Mm", "Bmm"})
_MOST_NODES = 96
_DEEPEST = 12
LARGEST = 1 << 22
_FEW = 0.7
"""Largest entropy of a target that picks few classes, as a share of that of an even one."""
_MASKED = 50.0
"""Distance below the largest value of a row at which a value is a mask."""


class _Way(NamedTuple):
    """Operations between the loss and a term."""

    picked: bool = False
    opposed: bool = False
    """True if a term of the opposite sign stands beside it."""
    logged: bool = False
    rows: bool = False
    """True if the logarithm is of one sum for each sample."""


def softmaxes(root: Any) -> Iterator[Any]:
    """Yield the operations LogSoftmax, Logsumexp and Exp in the terms of a loss that pick one of many."""
    queue = deque([] if root is None else [(root, _Way())])
    seen = set(queue)
    while queue and len(seen) < _MOST_NODES:
        node, way = queue.popleft()
        kind, inner = kind_of(node), inputs(node)
        if kind in _SHARES:
            by_sum = way.opposed and (bool(shape_of(node)) if kind == "Logsumexp" else way.logged and way.rows)
            if len(inner) == 1 and (way.picked if kind == "LogSoftmax" else by_sum):
                yield node
        elif kind in _TERMS or is_view(node):
            for one in inner:
                after = _after(node, one, way)
                if after is not None and (one, after) not in seen:
                    seen.add((one, after))
                    queue.append((one, after))


def spread(softmax: Any) -> tuple[float, int] | None:
    """Return the largest difference of two logits of a softmax, and the number of those of a row that are not masked.

    None if its values cannot be read.
    """
    kind = kind_of(softmax)
    values = saved(softmax, "self" if kind == "Logsumexp" else "result")
    if values is None or not has_values(values) or values.dim() < 2 or values.numel() > LARGEST:
        return None
    dims = -1 if kind == "Exp" else softmax._saved_dim
    if isinstance(dims, tuple):
        if len(dims) != 1:
            return None
        dims = dims[0]
    dim = _signed(dims)
    values = values.detach().float()
    values = values.log() if kind == "Exp" else values
    below = values.amax(dim, keepdim=True) - values
    kept = below < _MASKED
    return float(below.masked_fill(~kept, 0.0).max()), int(kept.sum(dim).float().mean())


def constant(node: Any) -> float:
    """Return the number of a product or a quotient with one operand without a gradient; 0 if it is unknown."""
    if kind_of(node) == "Div" and node.next_functions[0][0] is None:
        return 0.0
    number = getattr(node, "_saved_other", None) if str(node.name()).endswith("1") else factor(node)
    return float(number) if isinstance(number, int | float) else 0.0


def inputs(node: Any) -> list[Any]:
    """Return the operations that an operation has its operands with a gradient from."""
    return [following for following, _ in node.next_functions if following is not None]


def is_view(node: Any) -> bool:
    """Return True for views, copies and selections."""
    name = str(node.name())
    return name in RESHAPING or name in SELECTING or kind_of(node) == "Expand"


def dims_of(node: Any) -> tuple[int, ...] | None:
    """Return the dimensions that a sum or a norm is over, from the first one; None if it is over all."""
    dims, shape = getattr(node, "_saved_dim", None), shape_of(inputs(node)[0])
    return None if not dims or not shape else tuple(_signed(dim) % len(shape) for dim in dims)


def _after(node: Any, one: Any, way: _Way) -> _Way | None:
    """Return the way after an operation, to one of its operands; None if it ends there."""
    kind, inner = kind_of(node), inputs(node)
    if kind in _CLAMPS:
        return way if way.logged else None
    if kind.startswith("NllLoss"):
        return way._replace(picked=True)
    if kind == "Log":
        return way._replace(logged=True, rows=bool(shape_of(node)))
    if kind in ("Gather", "Diagonal") or str(node.name()) in SELECTING:
        wide, narrow = shape_of(one), shape_of(node)
        fewer = len(narrow) < len(wide) or narrow[-1:] < wide[-1:]
        return way._replace(picked=way.picked or fewer)
    if kind in ("Mul", "Div"):
        return _after_product(node, one, way)
    if kind in ("Add", "Sub", "Rsub") and len(inner) == 2 and not way.logged:
        first, second = (_sign(each) for each in inner)
        opposite = first * second * (1 if kind == "Add" else -1) < 0
        return way._replace(opposed=way.opposed or opposite)
    return way


def _after_product(node: Any, one: Any, way: _Way) -> _Way | None:
    kind, inner = kind_of(node), inputs(node)
    if len(inner) == 2:
        return way._replace(picked=False, opposed=(kind == "Div" and way.logged) or (way.opposed and way.logged))
    if way.logged:
        return way
    made = one
    while is_view(made) and (below := inputs(made)):
        made = below[0]
    if kind == "Mul" and kind_of(made) == "LogSoftmax":
        return way._replace(picked=True) if _picks_few(node, made) else None
    return way if abs(constant(node)) == 1.0 else way._replace(opposed=False)


def _picks_few(product: Any, made: Any) -> bool:
    """Return True if the factor of a logarithm of a softmax has few values: a mask of positives, a sharp target."""
    targets = saved(product, "self" if product.next_functions[0][0] is None else "other")
    if targets is None or not has_values(targets) or targets.numel() > LARGEST or targets.dim() < 2:
        return False
    dim = _signed(made._saved_dim)
    if targets.dim() != len(shape_of(made)) or targets.shape[dim] < 2:
        return False
    shares = targets.detach().float().abs()
    shares = shares / shares.sum(dim, keepdim=True).clamp(min=1e-12)
    entropy = -(shares * shares.clamp(min=1e-12).log()).sum(dim).mean()
    return float(entropy) <= _FEW * math.log(targets.shape[dim])


def _sign(term: Any) -> int:
    """Return the sign of the similarity in a term; 0 if it is of anything else."""
    sign = 1
    for _ in range(_DEEPEST):
        kind, inner = kind_of(term), inputs(term)
        if len(inner) != 1 or (kind not in _CHAIN and not is_view(term)):
            return sign if kind in _ENDS else 0
        if kind in ("Neg", "Rsub") or (kind in ("Mul", "Div") and constant(term) < 0):
            sign = -sign
        term = inner[0]
    return 0


def _signed(dim: int) -> int:
    """Return a dimension that the tape has as an unsigned number."""
    return dim if dim < 1 << 32 else dim - (1 << 64)
