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
_OF_FOCUS = frozenset({"Pow", "Rsub", "Neg", "Mul", "Div", "Add", "Exp", "Clamp", "ClampMin", "ClampMax"})
"""Operations between the factor of a focal loss and the loss."""
_DIFFERENCES = frozenset({"Sub", "Rsub"})
_OF_SUM = 2
"""Number of the reduction of a loss function that adds up the losses."""
_LEAF = "torch::autograd::AccumulateGrad"
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
    focal: list[tuple[Any, int]] = []
    for product, loss, divisors in _products(root):
        if shape_of(loss):
            if kind_of(loss) in _LOSSES and _weights(product) is not None:
                scene.tell(WeightsFollowed, site=site)
                return
            continue
        weights = _weights(product)
        if weights is None:
            if _is_focus(product, loss):
                focal.append((loss, _samples_of(loss)))
        elif _acts_by_mean(weights, loss, divisors):
            scene.tell(
                WeightsFollowed,
                site=site,
                made=_made(loss),
                name=_name(scene, frame, weights),
                count=weights.numel(),
                reduced="weights",
            )
            return
    if len(focal) == 1 and focal[0][1] >= _LEAST_WEIGHTS:  # several: one factor for each image, or each task
        loss, count = focal[0]
        scene.tell(WeightsFollowed, site=site, made=_made(loss), count=count, reduced="focal")


def _products(root: Any) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Yield the products in the terms of a loss, a factor of each that has a gradient, and the quotients above it."""
    queue: deque[tuple[Any, list[Any]]] = deque([] if root is None else [(root, [])])
    seen = {root}
    while queue and len(seen) < _MOST_NODES:
        node, divisors = queue.popleft()
        kind, inner = kind_of(node), _inputs(node)
        if kind == "Mul" and inner:
            yield from ((node, one, divisors) for one in inner)
        if kind in _SCALINGS and len({one for one in inner if shape_of(one)}) > 1:
            continue  # the weights act beside other values of each sample
        if kind in _TERMS or str(node.name()) in RESHAPING or str(node.name()) in SELECTING:
            below = [*divisors, node] if kind == "Div" and len(inner) == 1 else divisors
            new = [one for one in inner if one not in seen]
            seen.update(new)
            queue += ((one, below) for one in new)


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


def _acts_by_mean(weights: Any, loss: Any, divisors: list[Any]) -> bool:
    """Return True if a number is the mean of losses of samples, and each of them has a weight.

    A sum counts only if it is divided by the sum of the weights: the log-probability of an episode, or of a joint
    sample, is a sum too, and each of its rewards may be multiplied with it. A single weight chooses the place of a
    number in a vector, and weights that the mean is already made with change nothing: positions without padding,
    or the weights of the classes.
    """
    if int((weights != 0).sum()) == 1:
        return False
    for node in _of_number(loss):
        if _is_weighted_by(node, weights):
            continue
        shapes = [(shape, by_sum) for shape, by_sum in _reduced(node) if _fits(tuple(weights.shape), shape)]
        if any(not by_sum for _, by_sum in shapes) or (shapes and _is_divided(weights, divisors)):
            return True
    return False


def _is_weighted_by(node: Any, weights: Any) -> bool:
    """Return True if a mean of cross entropies has these weights, up to a factor, by its targets."""
    target, of_classes = saved(node, "target"), saved(node, "weight")
    if not kind_of(node).startswith("NllLoss") or target is None or target.numel() != weights.numel():
        return False
    kept = target != node._saved_ignore_index
    own = kept.double() if of_classes is None else of_classes.double()[target.where(kept, 0)] * kept
    given = weights.detach().double().reshape(-1).to(own.device)
    own = own.reshape(-1)
    if not bool(((own != 0) == (given != 0)).all()) or not bool(kept.any()):
        return False
    shares = (given / own)[own != 0]
    return float(shares.amax() - shares.amin()) <= 1e-5 * float(shares.abs().amax())


def _is_divided(weights: Any, divisors: list[Any]) -> bool:
    """Return True if a product is divided by the sum of its weights."""
    total = float(weights.detach().double().sum())
    for node in divisors:
        by = saved(node, "other")
        if by is not None and hasattr(by, "numel") and by.numel() == 1 and has_values(by):
            if math.isclose(float(by), total, rel_tol=1e-4):
                return True
    return False


def _samples_of(loss: Any) -> int:
    """Return the number of losses that a number is the mean of; 0 for those of one sample."""
    shapes = [shape for node in _of_number(loss) for shape, _ in _reduced(node)]
    return math.prod(shapes[0]) if shapes and shapes[0][0] > 1 else 0


def _reduced(node: Any) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Yield the shapes of the errors that a mean, or a sum, is of, each with True for a sum."""
    if kind_of(node) in _LOSSES:
        target = saved(node, "target")
        reduction = getattr(node, "_saved_reduction", 0)
        if reduction and target is not None and target.dim():
            yield tuple(target.shape), reduction == _OF_SUM
        return
    by_sum, inner = kind_of(node) == "Sum", _inputs(node)
    for _ in range(_DEEPEST):
        if len(inner) != 1 and not (len(inner) == 2 and inner[0] is inner[1]):
            return
        shape, kind = shape_of(inner[0]), kind_of(inner[0])
        if kind in _ERRORS or (kind == "Mul" and len(_inputs(inner[0])) == 2):
            if shape and (kind in _LOSSES or _is_of_difference(inner[0])):
                yield shape, by_sum
            return
        if kind not in _MEANS | _SCALINGS | {"Neg", "Sqrt"}:
            return
        by_sum |= kind == "Sum"
        inner = _inputs(inner[0])


def _is_of_difference(error: Any) -> bool:
    """Return True for squares and absolute values of an output minus a constant: not of a parameter, or its spread."""
    inner = set(_inputs(error))
    if len(inner) != 1:
        return False
    below = inner.pop()
    while str(below.name()) in RESHAPING and len(_inputs(below)) == 1:
        below = _inputs(below)[0]
    outputs = _inputs(below)
    return kind_of(below) in _DIFFERENCES and len(outputs) == 1 and outputs[0].name() != _LEAF


def _fits(weights: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return True if there is a weight for each error, or for each sample.

    >>> _fits((8,), (8, 3)), _fits((8, 1), (8, 3)), _fits((2, 4), (8,)), _fits((3,), (8, 3)), _fits((2, 4), (2, 4, 5))
    (True, True, True, False, True)
    """
    count = math.prod(weights)
    return any(count == math.prod(shape[:dims]) for dims in range(1, len(shape) + 1))


def _is_focus(product: Any, loss: Any) -> bool:
    """Return True if the other factor has the form of that of a focal loss: ``(1 - exp(-loss)) ** 2 * loss``."""
    others = [one for one in _inputs(product) if one is not loss]
    if len(others) != 1:
        return False
    node, kinds = others[0], list[str]()
    for _ in range(_DEEPEST):
        if node is loss:
            signs = [] if kind_of(loss) == "Neg" else ["Neg"]
            below = kinds[kinds.index("Rsub") + 1 :] if "Rsub" in kinds else []
            return [kind for kind in below if kind in ("Rsub", "Exp", "Neg")] == ["Exp", *signs]
        inner = _inputs(node)
        kinds.append(kind_of(node))
        of_samples = shape_of(node) and not (kinds == ["Mul"] and _weights(node) is not None)  # a weight of the class
        if kinds[-1] not in _OF_FOCUS or len(inner) != 1 or of_samples:
            return False
        node = inner[0]
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
