"""Weights of single samples, or positions, that are multiplied with a loss that is already averaged or summed.

They act by their mean only. The tape shows a product of a number with a tensor that has as many values as the number
is the mean of; and, of a focal loss, a product of a mean and a function of the exponential of this mean.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from truestep.events import Site, WeightsFollowed
from truestep.probes.backward.followed_losses import line_of
from truestep.probes.backward.origin import RESHAPING, SELECTING, shape_of
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved
from truestep.probes.forward.losses.followed_targets import kind_of

_LOSSES = frozenset(
    {
        "NllLoss", "NllLoss2D", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits", "MseLoss", "L1Loss",
        "SmoothL1Loss", "HuberLoss",
    }
)  # fmt: skip
"""Operations of loss functions that have a reduction."""
_ERRORS = _LOSSES | {"Pow", "Abs"}
_MEANS = frozenset({"Mean", "Sum"})
_SCALINGS = frozenset({"Mul", "Div"})
_TERMS = frozenset({"Add", "Sub", "Rsub", "Neg", "Stack", "Cat", "Expand"}) | _MEANS | _SCALINGS
"""Operations between a loss and its terms."""
_OF_FOCUS = frozenset({"Pow", "Rsub", "Sub", "Neg", "Mul", "Div", "Add", "Exp", "Clamp", "ClampMin", "ClampMax"})
"""Operations between the factor of a focal loss and the loss."""
_MOST_NODES = 64
_DEEPEST = 8
_LEAST_WEIGHTS = 4
_LARGEST = 1 << 22


def read_reduced(scene: Scene, root: Any, frame: FrameType | None, site: Site | None) -> None:
    """Emit an event about the first product of weights with a loss.

    Args:
        scene: the scene.
        root: the operation that made the value that is differentiated.
        frame: the user's frame that called backward; None if a library did.
        site: the line of the call.
    """
    for product, loss in _products(root):
        if shape_of(loss):
            if kind_of(loss) in _LOSSES and _weights(product) is not None:
                scene.tell(WeightsFollowed, site=site)
                return
            continue
        weights = _weights(product)
        shapes = [shape for inner in _of_number(loss) for shape in _reduced(inner)]
        if weights is None:
            if shapes and math.prod(shapes[0]) >= _LEAST_WEIGHTS and _is_focus(product, loss):
                scene.tell(
                    WeightsFollowed,
                    site=site,
                    made=_made(loss),
                    count=math.prod(shapes[0]),
                    reduced="focal",
                )
                return
        elif any(_fits(tuple(weights.shape), shape) for shape in shapes):
            scene.tell(
                WeightsFollowed,
                site=site,
                made=_made(loss),
                name=_name(scene, frame, weights),
                count=weights.numel(),
                reduced="weights",
            )
            return


def _products(root: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the products in the terms of a loss, each with a factor that has a gradient."""
    queue, seen = deque([] if root is None else [root]), {root}
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        kind, inner = kind_of(node), _inputs(node)
        if kind == "Mul" and inner:
            yield from ((node, one) for one in inner)
        if kind in _TERMS or str(node.name()) in RESHAPING or str(node.name()) in SELECTING:
            new = [one for one in inner if one not in seen]
            seen.update(new)
            queue += new


def _weights(product: Any) -> Any:
    """Return the factor without a gradient, if it has several values that are not all equal; None for others."""
    if len(_inputs(product)) != 1:
        return None
    part = "other" if product.next_functions[0][0] is not None else "self"
    values = saved(product, part)
    if values is None or not has_values(values) or not _LEAST_WEIGHTS <= values.numel() <= _LARGEST:
        return None
    return values if bool((values != values.reshape(-1)[0]).any()) else None


def _of_number(loss: Any) -> Iterator[Any]:
    """Yield the means and sums that a number is made of."""
    todo = [loss]
    for _ in range(_DEEPEST):
        if not todo:
            return
        node = todo.pop()
        kind, inner = kind_of(node), _inputs(node)
        if kind in _MEANS or kind in _LOSSES:
            yield node
        elif (kind in _SCALINGS and len(inner) == 1) or kind in ("Add", "Neg"):
            todo += inner


def _reduced(node: Any) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of the errors that a mean, or a sum, is of."""
    if kind_of(node) in _LOSSES:
        target = saved(node, "target")
        if getattr(node, "_saved_reduction", 0) and target is not None:
            yield tuple(target.shape)
        return
    inner = _inputs(node)
    for _ in range(_DEEPEST):
        if len(inner) != 1 and not (len(inner) == 2 and inner[0] is inner[1]):
            return
        shape, kind = shape_of(inner[0]), kind_of(inner[0])
        if kind in _ERRORS or (kind == "Mul" and len(_inputs(inner[0])) == 2):
            if shape and (kind != "Mul" or len(set(_inputs(inner[0]))) == 1):
                yield shape
            return
        if kind not in _MEANS | _SCALINGS | {"Neg", "Sqrt"}:
            return
        inner = _inputs(inner[0])


def _fits(weights: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return True if there is a weight for each error, or for each sample.

    >>> _fits((8,), (8, 3)), _fits((8, 1), (8, 3)), _fits((2, 4), (8,)), _fits((3,), (8, 3)), _fits((2, 4), (2, 4, 5))
    (True, True, True, False, True)
    """
    count = math.prod(weights)
    return any(count == math.prod(shape[:dims]) for dims in range(1, len(shape) + 1))


def _is_focus(product: Any, loss: Any) -> bool:
    """Return True if the other factor is made of the exponential of a loss, as in ``(1 - exp(-loss)) ** 2 * loss``."""
    todo = [one for one in _inputs(product) if one is not loss]
    found = False
    for _ in range(_DEEPEST):
        if not todo:
            return False
        node = todo.pop()
        kind, inner = kind_of(node), _inputs(node)
        if node is loss:
            return found
        found |= kind == "Exp"
        if kind in _OF_FOCUS and not shape_of(node):
            todo += inner
    return False


def _made(loss: Any) -> Site | None:
    """Return the line of the loss function that made a number; None if it is unknown."""
    return next((line for node in _of_number(loss) if (line := line_of(node)) is not None), None)


def _name(scene: Scene, frame: FrameType | None, weights: Any) -> str:
    """Return the variable that holds the weights; empty if it is unknown."""
    tensor = scene.torch.Tensor
    for name, value in variables(frame).items() if frame is not None else ():
        if isinstance(value, tensor) and has_values(value) and value.numel() == weights.numel():
            if value.data_ptr() == weights.data_ptr():
                return name
    return ""


def _inputs(node: Any) -> list[Any]:
    """Return the operations that an operation has its operands with a gradient from."""
    return [following for following, _ in node.next_functions if following is not None]
