"""Similarities of unit vectors in a softmax of the loss, and the factor that they are scaled with.

They lie between -1 and 1. With a factor below 1, as of a temperature that multiplies where it should divide, the
shares of the softmax are nearly equal for all vectors.
"""

from __future__ import annotations

import math
from types import FrameType
from typing import Any

from truestep.events import SimilaritiesRead, Site
from truestep.probes.backward.followed_losses import line_of
from truestep.probes.backward.loss_terms.softmaxes import (
    LARGEST,
    PRODUCTS,
    constant,
    dims_of,
    inputs,
    is_view,
    softmaxes,
    spread,
)
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved
from truestep.probes.forward.losses.followed_targets import kind_of, variable_of

_KEEPING = frozenset({"Cat", "MaskedFill", "Where", "Sub", "Rsub", "Add", "Neg", "Clamp"})
"""Operations between the softmax and the similarities, with tensors that have no gradient."""
_NORMS = frozenset({"LinalgVectorNorm", "Norm"})
_TO_NORMS = frozenset({"Expand", "ClampMin", "Clamp", "Add", "Div", "Sqrt"})
_MOST_NODES = 64
_LEAST_CLASSES = 8
_EXACT = 1e-3
_WIDEST = 2.0
"""Difference between the largest and the smallest similarity."""
_ROUNDING = 0.05


def read_similarities(scene: Scene, root: Any, frame: FrameType | None, site: Site | None) -> None:
    """Emit an event about the first softmax of similarities in the terms of a loss.

    Args:
        scene: the scene.
        root: the operation that made the value that is differentiated.
        frame: the user's frame that called backward; None if a library did.
        site: the line of the call.
    """
    for softmax in softmaxes(root):
        scale, read = _scale(softmax), spread(softmax)
        if scale is None or read is None:
            continue
        (by, path), (difference, classes) = scale, read
        if classes < _LEAST_CLASSES or difference > _WIDEST * by * (1 + _ROUNDING):
            continue
        least = math.log(1 + (classes - 1) * math.exp(-_WIDEST * by)) / math.log(classes)
        _, made = variable_of(scene, frame, path[::-1])
        made = line_of(softmax) if made is None else made
        scene.tell(
            SimilaritiesRead,
            site=site,
            made=made,
            factor=by,
            classes=classes,
            least=round(least, 3),
        )
        return


def _scale(softmax: Any) -> tuple[float, list[Any]] | None:
    """Return the largest factor of the similarities that a softmax gets, and the operations down to the first product.

    None if it gets anything else.
    """
    todo = [(one, 1.0, [one]) for one in inputs(softmax)]
    found: list[tuple[float, list[Any]]] = []
    for _ in range(_MOST_NODES):
        if not todo:
            return max(found, key=lambda one: one[0], default=None)
        node, by, path = todo.pop()
        kind, inner = kind_of(node), inputs(node)
        if kind in PRODUCTS:
            if not _is_of_units(node):
                return None
            found.append((by, path))
            continue
        if kind in ("Mul", "Div"):
            number = constant(node) if len(inner) == 1 else 0.0
            if not number or (kind == "Div" and abs(number) > 1):
                return None  # unknown, or a high temperature on purpose
            by *= abs(number if kind == "Mul" else 1 / number)
        elif kind == "Sum" and len(inner) == 1 and kind_of(inner[0]) == "Mul":  # (a * b).sum(1)
            if dims_of(node) != (len(shape_of(inner[0])) - 1,) or not _is_of_units(inner[0]):
                return None
            found.append((by, path))
            continue
        elif not is_view(node) and (kind not in _KEEPING or (len(inner) > 1 and kind != "Cat")):
            return None
        todo += [(one, by, [*path, one]) for one in inner]
    return None


def _is_of_units(product: Any) -> bool:
    """Return True if both factors of a product have rows, or columns, of length 1."""
    names = ("self", "other") if kind_of(product) == "Mul" else ("self", "mat2")
    for name, (made, _) in zip(names, product.next_functions, strict=False):
        values, dim = saved(product, name), -2 if name == "mat2" else -1
        if values is None:
            if made is None or not _is_normalised(made, dim):
                return False
        elif not _has_units(values, dim):
            return False
    return True


def _has_units(values: Any, dim: int) -> bool:
    if not has_values(values) or values.numel() > LARGEST or values.dim() < 2 or not values.is_floating_point():
        return False
    squares = values.detach().float().square().sum(dim)
    return bool(((squares - 1).abs() <= 2 * _EXACT).all())


def _is_normalised(node: Any, dim: int) -> bool:
    """Return True for a quotient of a tensor and its norm along a dimension, also as a view of it."""
    shape = shape_of(node)
    while is_view(node) and (inner := inputs(node)):
        node = inner[0]
    if kind_of(node) != "Div" or len(node.next_functions) != 2 or node.next_functions[1][0] is None:
        return False
    below = node.next_functions[1][0]
    while kind_of(below) in _TO_NORMS and (inner := inputs(below)):
        below = inner[0]
    if kind_of(below) not in _NORMS or len(shape) < 2:
        return False
    dims, whole = dims_of(below), shape_of(node)
    if dims is None:  # of all values: no row is longer
        return True
    return len(dims) == 1 and whole[dims[0]] == shape[dim] and (whole != shape or dims[0] == dim % len(shape))
