"""Broadcasts near a loss on the tape: one value of each sample met one value of each other sample."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from truestep.events import BroadcastOnTape, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import saved

_REDUCTIONS = {
    "MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1", "LinalgVectorNormBackward0", "NormBackward0",
    "NormBackward1",
}  # fmt: skip
_BETWEEN = {
    "PowBackward0", "AbsBackward0", "MulBackward0", "DivBackward0", "SqrtBackward0", "LogBackward0", "Log1PBackward0",
    "CoshBackward0", "WhereBackward0", "ClampBackward0", "ClampBackward1", "ClampMinBackward0", "ClampMaxBackward0",
    "MaximumBackward0", "MinimumBackward0", "SoftplusBackward0", "ReluBackward0", "TanhBackward0",
}  # fmt: skip
"""Operations on the differences of a regression; not those of kernels, which are sums over pairs on purpose."""
_DIFFERENCES = {"SubBackward0", "RsubBackward0"}
_ELEMENTWISE = {"MulBackward0", "DivBackward0", *_DIFFERENCES}
_PAIR = 2
_LEAF = "torch::autograd::AccumulateGrad"
Shape = tuple[int, ...]
_VIEWS = ("Unsqueeze", "Expand", "View", "Reshape")
"""Operations that give a tensor another shape on purpose."""
_CHOICES = {"MinimumBackward0", "MaximumBackward0", "WhereBackward0", "ClampBackward0", "ClampBackward1"}
_FACTORS = {"MulBackward0", "DivBackward0"}
_OF_TERMS = {"AddBackward0", "NegBackward0", *_DIFFERENCES}
_MOST_TERMS = 32
"""Operations between a loss and its terms that are looked at."""


def read_broadcasts(scene: Scene, root: Any, site: Site | None, *, taken: bool = False) -> None:
    """Emit an event for each kind of such broadcasts in the terms of a loss.

    A call of ``autograd.grad`` can also be for the forces between points, or for a result of the program: only that of
    one number counts, with predictions that were computed.

    Args:
        scene: gets the events.
        root: the operation that made the loss.
        site: line of the backward pass.
        taken: whether the pass is a call of ``autograd.grad``.
    """
    if taken and _shape(root):
        return
    found = _broadcast(root, computed=taken)
    if found is None:
        found = next((shapes for node in _products(root) if (shapes := _of_two_samples(node)) is not None), None)
    for shapes in (found, _spread(root)):
        if shapes is not None:
            scene.emit(BroadcastOnTape(site=site, shape=shapes[0], wide=shapes[1], taken=taken))


def _shape(node: Any, index: int = 0) -> Shape:
    if node.name() == _LEAF:
        return tuple(node.variable.shape)
    metadata = getattr(node, "_input_metadata", ())
    sizes = tuple(metadata[index].shape) if index < len(metadata) else ()
    return sizes if all(type(size) is int for size in sizes) else ()  # nested tensors have others


def _broadcast(root: Any, *, computed: bool) -> tuple[Shape, Shape] | None:
    """Return the shapes of a prediction (N, 1) or (N, ...) that a difference in a term turned into (N, N, ...)."""
    found = None
    for node in _differences(root):
        wide = _shape(node)
        inputs = [(following, index) for following, index in node.next_functions if following is not None]
        if len(wide) < _PAIR or wide[0] != wide[1] or wide[0] < _PAIR:
            continue
        if len(inputs) == _PAIR and wide not in [_shape(*one) for one in inputs]:
            return None  # pairs of predictions on purpose, as in an energy distance
        if len(inputs) != 1 or found is not None:
            continue
        child, index = inputs[0]
        if child.name().startswith((*_VIEWS, *((_LEAF,) if computed else ()))):
            continue
        shape = _shape(child, index)
        count, of_each = wide[0], wide[2:]
        narrow = ((count, *of_each),) if of_each else ((count, 1), (count,), (1, count))
        if shape in narrow:
            found = shape, wide
    return found


def _spread(root: Any) -> tuple[Shape, Shape] | None:
    """Return the shapes of a prediction (N, 1, ...) that was spread over the samples of its targets near the loss."""
    queue, seen = deque([] if root is None else [root]), 0
    while queue and seen < _MOST_TERMS:
        node, seen = queue.popleft(), seen + 1
        inputs = [(following, index) for following, index in node.next_functions if following is not None]
        wide = _shape(node) if node.name() in _ELEMENTWISE else ()
        shapes = [_shape(*one) for one in inputs]
        if len(wide) > _PAIR and wide[0] == wide[1] > 1 and wide not in shapes:
            narrow = (wide[0], 1, *wide[2:])
            made = [child.name() for (child, _), shape in zip(inputs, shapes, strict=True) if shape == narrow]
            if made and not any(name.startswith(_VIEWS) for name in made):
                return narrow, wide
        queue.extend(following for following, _ in inputs)
    return None


def _differences(root: Any) -> Iterator[Any]:
    """Yield the differences of tensors that a loss is made of by means, sums and operations on each element."""
    queue = deque([] if root is None else [root])
    for _ in range(_MOST_TERMS):
        if not queue:
            return
        node = queue.popleft()
        name = node.name()
        shape = _shape(node)
        if name in _DIFFERENCES and shape:
            yield node
        if name in _REDUCTIONS | _BETWEEN or (name in _OF_TERMS and (not shape or _is_of_pairs(node, shape))):
            queue.extend(following for following, _ in node.next_functions if following is not None)


def _is_of_pairs(node: Any, shape: Shape) -> bool:
    """Return True for a sum or a difference of square tables, such as the second case of a Huber loss."""
    shapes = {_shape(following, index) for following, index in node.next_functions if following is not None}
    return len(shape) == _PAIR and shape[0] == shape[1] and shapes == {shape}


def _products(root: Any) -> Iterator[Any]:
    """Yield the products of square tables that a loss is the mean or the sum of, whole, by terms and plain factors."""
    queue = deque([] if root is None else [root])
    for _ in range(_MOST_TERMS):
        if not queue:
            return
        node = queue.popleft()
        name, shape = node.name(), _shape(node)
        inner = [(following, index) for following, index in node.next_functions if following is not None]
        if not shape:
            if name in _REDUCTIONS | _OF_TERMS | _FACTORS:
                queue.extend(following for following, _ in inner)
            continue
        if len(shape) != _PAIR or shape[0] != shape[1] or shape[0] < _PAIR:
            continue
        if name == "MulBackward0":
            yield node
        if name in _OF_TERMS | _CHOICES or (name in _FACTORS and _has_plain_factor(node)):
            queue.extend(following for following, index in inner if _shape(following, index) == shape)


def _has_plain_factor(node: Any) -> bool:
    """Return True if a product or a quotient has one number as its other side."""
    first, second = (following for following, _ in node.next_functions)
    other = saved(node, "self" if first is None else "other") if first is None or second is None else None
    return other is not None and other.numel() == 1


def _of_two_samples(node: Any) -> tuple[Shape, Shape] | None:
    """Return the shapes of a product of a column and a row that both have one value for each sample, (N, 1) and (N,).

    Its mean is the product of two means, which is not written so on purpose. A side that was given its shape by a view
    is meant to have it.
    """
    wide, shapes, known = _shape(node), [], []
    sides = list(node.next_functions)
    for (following, index), part in zip(sides, ("self", "other"), strict=True):
        if following is not None:
            name = following.name()
            both = all(side is not None for side, _ in sides)
            if name == _LEAF or name.startswith((*_VIEWS, *(("Squeeze",) if both else ()))):
                return None
            shapes.append(_shape(following, index))
            known.append(shapes[-1])
            continue
        other = saved(node, part)
        if other is None or (other._base is not None and other._base.dim() < other.dim()):
            return None
        shapes.append(tuple(other.shape))
    count = wide[0]
    return (known[0], wide) if sorted(shapes, key=len) == [(count,), (count, 1)] else None
