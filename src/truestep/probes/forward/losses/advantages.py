"""Factors of log-probabilities with a gradient to the values that the same loss trains, as in an actor-critic.

The tape shows a product of a log-probability of fixed actions and a difference to a value, beside an error of that
value: a policy gradient with a baseline. The log-probability is of a softmax, a sigmoid, or a normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import AdvantageFollowed, Site
from truestep.probes.backward.loss_terms.terms import below
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.scene import Scene
from truestep.probes.forward.losses.followed_targets import ERRORS, kind_of, variable_of

_VIEWS = frozenset({"Squeeze", "Unsqueeze", "View", "UnsafeView", "ReshapeAlias", "Clone", "ToCopy", "Alias"})
_CHOICES = frozenset({"Select", "Slice", "Index", "IndexSelect", "Unbind"})
_PARTS = _CHOICES | {"Stack", "Cat", "Expand", "T", "Transpose"}
_DIFFERENCES = frozenset({"Sub", "Rsub"})
_SUMS = frozenset({"Add", "Neg"}) | _DIFFERENCES
_SIZES = frozenset({"Pow", "Abs"})
_PRODUCTS = frozenset({"Mul", "Dot", "Mv"})
_TERMS = _SUMS | _SIZES | _PARTS | _VIEWS | {
    "Mean", "Sum", "Div", "Where", "MaskedFill", "MaskedSelect", "Minimum", "Maximum", "Min", "Max", "Clamp",
    "ClampMin", "ClampMax",
}  # fmt: skip
"""Operations between a loss and its terms."""
_LINEAR = _SUMS | _PARTS | _VIEWS | {"Div", "Mul", "Where", "MaskedFill", "Flip", "CopySlices", "IndexPut"}
"""Operations between an advantage and a value."""
_OF_ACTIONS = _SUMS | _PARTS | _VIEWS | {"Sum", "Mul", "Div", "Gather", "Clamp", "Minimum"}
"""Operations between a factor of an advantage and a logarithm."""
_LOGARITHMS = frozenset({
    "LogSoftmax", "Logsumexp", "Log", "LogSigmoid", "NllLoss", "NllLoss2D", "BinaryCrossEntropyWithLogits",
    "LinalgSolveTriangular",
})  # fmt: skip
_SCALINGS = frozenset({"Mul", "Div"})
_DEEPEST = 8
_MOST_NODES = 4096
_MOST_PRODUCTS = 64


@dataclass(slots=True)
class _Read:
    """Terms of a loss.

    Attributes:
        products: products of two tensors with a gradient.
        weighted: tensors with a gradient that are multiplied with one that has none.
        values: operations that make values, of which the loss has an error.
    """

    products: list[Any] = field(default_factory=list)
    weighted: list[Any] = field(default_factory=list)
    values: set[Any] = field(default_factory=set)


class Advantages:
    """Emits `AdvantageFollowed`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def look(self, node: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at the products and errors that a backward pass starts from.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
        """
        read = _read(node)
        if not read.values:
            return
        for product in read.products:
            one, two = _inputs(product)
            for action, factor in ((one, two), (two, one)):
                logarithm, path = _logarithm(action), _path_to(factor, read.values)
                if path and logarithm is not None and logarithm not in below([factor])[0]:
                    name, made = variable_of(self._scene, frame, path[::-1])
                    self._scene.tell(AdvantageFollowed, site=site, made=made, name=name)
                    return
        if any(_logarithm(one) is not None for one in read.weighted):
            self._scene.tell(AdvantageFollowed, site=site, gradient=False)


def _read(root: Any) -> _Read:
    """Return the terms of a loss."""
    read, seen = _Read(), {root}
    queue = [] if root is None else [root]
    while queue and len(seen) < _MOST_NODES:
        node = queue.pop()
        kind, inner = kind_of(node), _inputs(node)
        same = len(inner) == 2 and inner[0] is inner[1]
        if kind in _PRODUCTS and len(inner) == 2 and not same:
            if len(read.products) < _MOST_PRODUCTS:
                read.products.append(node)
        elif kind in _PRODUCTS and len(inner) == 1 and len(read.weighted) < _MOST_PRODUCTS:
            read.weighted += inner
        elif kind in ERRORS:
            read.values.update(one for operand in inner for one in _chain(operand))
        elif inner and (kind in _SIZES or (kind in _PRODUCTS and same)):
            error = _behind_views(inner[0])
            if kind_of(error) in _DIFFERENCES:
                read.values.update((error, *(one for operand in _inputs(error) for one in _chain(operand))))
        if kind in _TERMS or kind in _PRODUCTS:
            new = [one for one in inner if one not in seen]
            seen.update(new)
            queue += new
    return read


def _path_to(factor: Any, values: set[Any]) -> list[Any]:
    """Return the operations from a factor down to the difference to a value; empty if it is none."""
    todo: list[tuple[Any, list[Any], bool]] = [(_behind_views(factor), [], False)]
    seen: set[Any] = set()
    while todo and len(seen) < _MOST_NODES:
        node, path, differs = todo.pop()
        kind = kind_of(node)
        # The difference from a number is that of one step; those of a whole batch are probabilities of the opposite.
        differs = differs or kind == "Sub" or (kind == "Rsub" and math.prod(shape_of(node)) == 1)
        if node in values and differs:
            ends = [place for place, one in enumerate((*path, node)) if kind_of(one) in _DIFFERENCES]
            return [*path, node][: ends[-1] + 1]
        inner = _inputs(node)
        if node in seen or kind not in _LINEAR or (kind == "Mul" and len(inner) > 1):
            continue
        seen.add(node)
        if kind == "Div":  # not the divisor, such as a deviation
            inner = inner[:1] if node.next_functions[0][0] is not None else []
        todo += [(_behind_views(one), [*path, node], differs) for one in inner]
    return []


def _logarithm(factor: Any) -> Any:
    """Return the operation that makes a log-probability of actions without a gradient; None for another factor.

    The ratio of a probability to an earlier one is a factor of this kind, too.
    """
    for node in _walk(_behind_views(factor)):
        kind, inner = kind_of(node), _inputs(node)
        if kind in _LOGARITHMS:
            return node
        if kind == "Pow" and inner and _is_of_place(inner[0]):
            return node
    return None


def _is_of_place(node: Any) -> bool:
    """Return True for a distance to a number without a gradient, such as an action, in units of a deviation or not."""
    todo = [node]
    for _ in range(_DEEPEST):
        if not todo:
            return False
        node = _behind_views(todo.pop())
        kind, inner = kind_of(node), _inputs(node)
        if kind in _DIFFERENCES:
            return len(inner) == 1
        if kind in _SCALINGS:
            todo += inner
    return False


def _walk(root: Any) -> Iterator[Any]:
    """Yield the operations of a log-probability, without those behind a logarithm."""
    todo, seen = [root], {root}
    while todo and len(seen) < _MOST_NODES:
        node = todo.pop()
        yield node
        kind, inner = kind_of(node), [_behind_views(one) for one in _inputs(node)]
        ratio = kind == "Exp" and inner and kind_of(inner[0]) in _DIFFERENCES and len(_inputs(inner[0])) == 1
        if (kind in _OF_ACTIONS or ratio) and not (kind == "Mul" and len(inner) > 1):
            new = [one for one in inner if one not in seen]
            seen.update(new)
            todo += new


def _inputs(node: Any) -> list[Any]:
    """Return the operations that an operation has its operands with a gradient from."""
    return [following for following, _ in node.next_functions if following is not None]


def _chain(node: Any) -> Iterator[Any]:
    """Yield the operation that made an operand of an error, and those of the tensors that it is a part of."""
    node = _behind_views(node)
    yield node
    while kind_of(node) in _CHOICES and (inner := _inputs(node)):
        node = _behind_views(inner[0])
        yield node


def _behind_views(node: Any) -> Any:
    """Return the operation that made the numbers of a tensor, behind views of them."""
    while kind_of(node) in _VIEWS and (inner := _inputs(node)):
        node = inner[0]
    return node
