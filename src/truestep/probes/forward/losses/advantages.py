"""Factors of log-probabilities with a gradient to the values that the same loss trains, as in an actor-critic.

The tape shows a product of a log-probability of fixed actions and a difference to a value, beside an error of that
value: a policy gradient with a baseline. The log-probability is of a softmax, a sigmoid, or a normal distribution, of
the chosen classes only. The value is an output of a layer: shares, gates and scales end in a function of their range.
Each has parameters that the other lacks, or both are outputs of one layer: not a residual times its square.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import AdvantageFollowed, Site
from truestep.probes.backward.loss_terms.terms import below
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import saved
from truestep.probes.forward.losses.followed_targets import ERRORS, kind_of, variable_of

_VIEWS = frozenset({"Squeeze", "Unsqueeze", "View", "UnsafeView", "ReshapeAlias", "Clone", "ToCopy", "Alias"})
_CHOICES = frozenset({"Select", "Slice", "Index", "IndexSelect", "Unbind", "Split", "SplitWithSizes"})
_PARTS = _CHOICES | {"Stack", "Cat", "Expand", "T", "Transpose", "Permute"}
_DIFFERENCES = frozenset({"Sub", "Rsub"})
_SUMS = frozenset({"Add", "Neg"}) | _DIFFERENCES
_SIZES = frozenset({"Pow", "Abs"})
_PRODUCTS = frozenset({"Mul", "Dot", "Mv"})
_TERMS = _SUMS | _PARTS | _VIEWS | {
    "Mean", "Sum", "Div", "Where", "MaskedFill", "MaskedSelect", "Minimum", "Maximum", "Min", "Max", "Clamp",
    "ClampMin", "ClampMax",
}  # fmt: skip
"""Operations between a loss and its terms."""
_LINEAR = _SUMS | _PARTS | _VIEWS | {"Div", "Mul", "Where", "MaskedFill", "Flip", "CopySlices", "IndexPut"}
_OF_ADVANTAGES = _LINEAR | {"Clamp", "ClampMin", "ClampMax", "Relu", "Tanh"}
"""Operations between an advantage and a value."""
_OF_ACTIONS = _SUMS | _PARTS | _VIEWS | {"Sum", "Mul", "Div", "Gather", "Clamp", "Minimum"}
"""Operations between a factor of an advantage and a logarithm."""
_OF_CLASSES = frozenset({"LogSoftmax", "Logsumexp", "Log"})
_CHOOSING = _CHOICES | {"Gather", "Sum"}
_OF_LABELS = frozenset({"NllLoss", "NllLoss2D", "BinaryCrossEntropyWithLogits"})
_LOGARITHMS = _OF_CLASSES | _OF_LABELS | {"LogSigmoid", "Xlogy"}
_SHARES = frozenset({"Softmax", "Sigmoid"})
_OF_SHARES = _SUMS | _PARTS | _VIEWS | {"Mul", "Gather", "Clamp", "ClampMin", "Sum", "Where"}
"""Operations between a logarithm and a share."""
_LAYERS = frozenset({
    "Addmm", "Mm", "Mv", "Dot", "Bmm", "Addbmm", "Baddbmm", "Convolution", "Embedding", "Tanh",
    "torch::autograd::AccumulateGrad",
})  # fmt: skip
"""Operations that make values of both signs."""
_OF_LAYERS = _LINEAR | {"Mean", "Sum", "Minimum", "Maximum", "Min", "Max", "Gather"}
"""Operations between a value and the layers that made it."""
_OF_PLACES = frozenset({"Mul", "Div", "LinalgSolveTriangular", "Permute", "Transpose", "T", "Expand"})
"""Operations between a distance and its square."""
_OUTPUTS = frozenset({"Split", "SplitWithSizes", "Unbind"})
"""Operations with several outputs: one may be of the policy, and another one of the critic."""
_DEEPEST = 8
_MOST_NODES = 4096
_MOST_PRODUCTS = 64
_MOST_CANDIDATES = 4
_MOST_PARTS = 256
"""Operations below a term, the nearest first."""


@dataclass(slots=True)
class _Read:
    """Terms of a loss.

    Attributes:
        products: products of two tensors with a gradient.
        weighted: tensors with a gradient that are multiplied with one that has none.
        values: operations that make values, of which the loss has an error.
        layers: the parameters of the layers that make values, for those that are called again.
    """

    products: list[Any] = field(default_factory=list)
    weighted: list[Any] = field(default_factory=list)
    values: set[Any] = field(default_factory=set)
    layers: set[frozenset[int]] = field(default_factory=set)


class Advantages:
    """Emits `AdvantageFollowed`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def look(self, node: Any, frame: FrameType | None, site: Site | None, inputs: tuple[Any, ...] = ()) -> None:
        """Look at the products and errors that a backward pass starts from.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
            inputs: the tensors that get a gradient; empty if all leaves do.
        """
        read = _read(node)
        if not read.values:
            return
        for action, path, values in itertools.islice(_candidates(read), _MOST_CANDIDATES):
            if any(_trains(value, action, path, inputs) for value in values):
                name, made = variable_of(self._scene, frame, path[::-1])
                self._scene.tell(AdvantageFollowed, site=site, made=made, name=name)
                return
        if any(logarithm(one, one) is not None for one in read.weighted):
            self._scene.tell(AdvantageFollowed, site=site, gradient=False)


def _candidates(read: _Read) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Yield log-probabilities, operations from the other factor to the difference, and candidates for the value."""
    for product in read.products:
        one, two = _inputs(product)
        for action, factor in ((one, two), (two, one)):
            if logarithm(action, factor) is not None:
                path, values = _path_to(factor, read)
                if values := list(filter(_is_of_layers, values)):
                    yield action, path, values


def _trains(value: Any, action: Any, path: list[Any], inputs: tuple[Any, ...]) -> bool:
    """Return True if a value and a log-probability have different parameters, and the pass reaches the value's.

    Args:
        value: the value.
        action: the log-probability.
        path: operations from an advantage down to the difference to the value.
        inputs: the tensors that get a gradient; empty if all leaves do.
    """
    operations, policy = below([action])
    _, critic = below([value])
    own = critic - policy
    if not operations.isdisjoint(path if kind_of(value) in _OUTPUTS else (*path, value)):
        return False
    if own and not policy <= critic:
        return not inputs or not own.isdisjoint(map(id, inputs))
    outputs = {last for last in _chain(value) if last is not value and kind_of(last) in _LAYERS}
    return not operations.isdisjoint(outputs) and (not inputs or not critic.isdisjoint(map(id, inputs)))


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
        if kind in _TERMS or kind in _PRODUCTS:  # terms are outside of squares
            new = [one for one in inner if one not in seen]
            seen.update(new)
            queue += new
    read.layers = {_parameters(value) for value in read.values if kind_of(value) in _LAYERS} - {frozenset()}
    return read


def _parameters(layer: Any) -> frozenset[int]:
    """Return the ids of the leaves that are operands of an operation, transposed or not."""
    leaves = [one if kind_of(one) not in _PARTS else next(iter(_inputs(one)), one) for one in _inputs(layer)]
    return frozenset(id(leaf.variable) for leaf in leaves if hasattr(leaf, "variable"))


def _path_to(factor: Any, read: _Read) -> tuple[list[Any], list[Any]]:
    """Return the operations from a factor down to the difference to a value, and candidates for the value."""
    before: dict[Any, Any] = {}
    """Operation to the one above it."""
    todo: deque[tuple[Any, Any, bool]] = deque([(_behind_views(factor), None, False)])
    while todo and len(before) < _MOST_PARTS:
        node, above, differs = todo.popleft()
        if node in before:
            continue
        before[node] = above
        kind = kind_of(node)
        # The difference from a number is that of one step; those of a whole batch are probabilities of the opposite.
        differs = differs or kind == "Sub" or (kind == "Rsub" and math.prod(shape_of(node)) == 1)
        if differs and (node in read.values or (kind in _LAYERS and _parameters(node) in read.layers)):
            ends = _inputs(node)
            while kind_of(node) not in _DIFFERENCES:
                ends, node = [node], before[node]
            path = [node]
            while (node := before[node]) is not None:
                path.append(node)
            return path[::-1], [_behind_views(one) for one in ends]
        inner = _inputs(node)
        if kind not in _OF_ADVANTAGES or (kind == "Mul" and len(inner) > 1):
            continue
        if kind == "Div":  # not the divisor, such as a deviation
            inner = inner[:1] if node.next_functions[0][0] is not None else []
        todo += [(_behind_views(one), node, differs) for one in inner]
    return [], []


def _is_of_layers(value: Any) -> bool:
    """Return True if layers make a value, without a function that ends in shares or in positive numbers."""
    todo, seen = [value], {value}
    while todo and len(seen) < _MOST_PARTS:
        node = todo.pop()
        kind, inner = kind_of(node), _inputs(node)
        if kind in _LAYERS:
            continue
        if kind not in _OF_LAYERS:
            return False
        new = [one for one in inner if one not in seen]
        seen.update(new)
        todo += new
    return True


def logarithm(action: Any, factor: Any) -> Any:
    """Return the operation that makes a log-probability of actions without a gradient; None for another factor.

    The ratio of a probability to an earlier one is a factor of this kind, too.

    Args:
        action: the factor.
        factor: the one that it is multiplied with.
    """
    nodes = list(_walk(_behind_views(action)))
    kinds = {kind_of(node) for node in nodes}
    chosen = not kinds.isdisjoint(_CHOOSING)
    apart = "Mul" in kinds and shape_of(factor)[-1:] in ((), (1,))
    for node in nodes:
        kind, inner = kind_of(node), _inputs(node)
        if kind in _OF_CLASSES or (kind == "Div" and len(inner) == 1):
            shares = _shares(node)
            if shares is None:
                continue
            one = (chosen or kind == "Log") and _drops(shape_of(shares), action)
            if one or apart or kind_of(shares) == "Sigmoid":
                return node
        elif kind in _LOGARITHMS:
            if kind == "LogSigmoid" or len(inner) == 1:  # the labels have no gradient
                return node
        elif kind == "Pow" and inner and _is_of_place(inner[0]):
            return node
    return None


def _shares(node: Any) -> Any:
    """Return the operation that made the probabilities that a logarithm or a ratio is of; None if they are none."""
    inner = _inputs(node)
    if kind_of(node) not in ("Log", "Div"):
        return inner[0] if inner else None
    todo, seen = list(inner), set(inner)
    while todo and len(seen) < _MOST_PARTS:
        node = todo.pop()
        kind, inner = kind_of(node), _inputs(node)
        if kind in _SHARES or (kind == "Div" and len(inner) == 2):
            return node
        if kind == "Mul" and (factor := saved(node, "other")) is not None and not factor.dim():
            return None  # a share times a number is a scale, of a time for instance
        new = [one for one in inner if one not in seen] if kind in _OF_SHARES else []
        seen.update(new)
        todo += new
    return None


def _drops(shape: tuple[int, ...], action: Any) -> bool:
    """Return True if a log-probability has one of the classes of a shape: another last extent, or fewer of them."""
    now = shape_of(action)
    return len(now) < len(shape) or now[-1:] != shape[-1:]


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
        if kind in _OF_PLACES:
            todo += inner
    return False


def _walk(root: Any) -> Iterator[Any]:
    """Yield the operations of a log-probability, without those behind a logarithm."""
    todo, seen = deque([root]), {root}
    while todo and len(seen) < _MOST_PARTS:
        node = todo.popleft()
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
