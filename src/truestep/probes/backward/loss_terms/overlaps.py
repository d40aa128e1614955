"""Overlaps on the tape of a loss: quotients of sums, such as dice, IoU and Tversky, that expect probabilities.

Such a quotient is linear in the prediction above and below its line: products with constant targets, then sums. With
probabilities it is between zero and one. The scores of a layer have no range, and the quotient no bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.events import OverlapRead, Site
from truestep.probes.backward.origin import RESHAPING, SELECTING
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

LAYERS = frozenset({"AddmmBackward0", "MmBackward0", "ConvolutionBackward0"})
_SUMS = ("SumBackward", "MeanBackward")
_LINEAR = frozenset(
    {"AddBackward0", "SubBackward0", "RsubBackward0", "RsubBackward1", "NegBackward0", "StackBackward0"}
)
_FACTORS = ("MulBackward0", "DivBackward0")
_THROUGH = ("Expand", "Upsample", "Split", "Unbind", "SafeSplit")
_CLAMPS = ("ClampBackward0", "ClampBackward1", "ClampMinBackward0")
_OF_LOGITS = ("LogSoftmaxBackward0", "SoftmaxBackward0", "SigmoidBackward0", "LogSigmoidBackward0",
              "BinaryCrossEntropyWithLogitsBackward0")  # fmt: skip
_LEAF = "torch::autograd::AccumulateGrad"
_SOFTMAX = "SoftmaxBackward0"
_MOST_NODES = 400
_MOST_QUOTIENTS = 16
_LARGEST = 1 << 24
_SLACK = 0.02
"""Distance from zero and one that rounding and a smoothing constant may make."""
_LEAST_RANK = 3


class _Path(NamedTuple):
    """A way down from a quotient, through linear operations."""

    node: Any
    reduced: bool = False
    """Whether a sum or a mean is above."""
    factors: tuple[Any, ...] = ()
    """Constants of the products below that sum."""


def read_overlaps(scene: Scene, root: Any, site: Site | None) -> None:
    """Emit an event for the first overlap on the tape of a loss that is made of scores or of a softmax."""
    torch = scene.torch
    above = list(_above(root))
    of_logits = {made for node in above if node.name() in _OF_LOGITS for made in _before(node)}
    quotients = [node for node in above if _is_quotient(node)]
    for node in quotients[:_MOST_QUOTIENTS]:
        upper, lower = (list(_ends(following)) for following, _ in node.next_functions)
        ends = {path.node for path in (*upper, *lower) if path.node.name() != _LEAF}
        if not ends or not all(any(path.reduced for path in paths) for paths in (upper, lower)):
            continue
        masked = [path for path in upper if path.reduced and path.factors and path.node in ends]
        if not masked or not all(_is_share(torch, path.factors) for path in masked):
            continue
        raw = all(end.name() in LAYERS for end in ends)
        crossed = not raw and any(_runs_across(path) for path in masked)
        if raw or crossed:
            scene.tell(
                OverlapRead,
                site=site,
                scores=raw,
                shared=raw and not ends.isdisjoint(of_logits),
                outside=raw and _is_outside(node),
                crossed=crossed,
            )
            return


def _above(root: Any) -> Iterator[Any]:
    """Yield the operations between a loss and the layers that it was computed from, nearest first."""
    queue, seen = deque([] if root is None else [root]), {root}
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        yield node
        if node.name() in LAYERS:
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def _before(node: Any) -> Iterator[Any]:
    """Yield the layers before an operation on logits, through views and resizing."""
    queue = [following for following, _ in node.next_functions if following is not None]
    for _ in range(_MOST_NODES):
        if not queue:
            return
        one = queue.pop()
        name = str(one.name())
        if name in LAYERS:
            yield one
        elif name in RESHAPING or name in SELECTING or name == "AddBackward0" or name.startswith(_THROUGH):
            queue += [following for following, _ in one.next_functions if following is not None]


def _is_quotient(node: Any) -> bool:
    if node.name() != "DivBackward0":
        return False
    return len(node.next_functions) == 2 and all(following is not None for following, _ in node.next_functions)


def _ends(node: Any) -> list[_Path]:
    """Return the ways from a side of a quotient, through linear operations, to its inputs; none for others."""
    queue, found = [_Path(node)], list[_Path]()
    for _ in range(_MOST_NODES):
        if not queue:
            return found
        path = queue.pop()
        node = path.node
        name = str(node.name())
        inner = [following for following, _ in node.next_functions if following is not None]
        if name in LAYERS or name in (_LEAF, _SOFTMAX):
            found.append(path)
        elif name.startswith(_SUMS):
            queue += [path._replace(node=one, reduced=True) for one in inner]
        elif name in _FACTORS:
            if len(inner) != 1:
                return []
            factors = (*path.factors, _constant(node)) if path.reduced and name == "MulBackward0" else path.factors
            queue.append(path._replace(node=inner[0], factors=factors))
        elif name in _CLAMPS and not path.reduced:
            queue.append(path._replace(node=inner[0]))
        elif name in _LINEAR or name in RESHAPING or name in SELECTING or name.startswith(_THROUGH):
            queue += [path._replace(node=one) for one in inner]
        else:
            return []
    return []


def _constant(node: Any) -> Any:
    """Return the constant of a product: the side that has no gradient; None if it cannot be read."""
    return saved(node, "other" if node.next_functions[0][0] is not None else "self")


def _is_share(torch: Any, factors: tuple[Any, ...]) -> bool:
    """Return True if the largest constants of a product are between zero and one, as targets and masks are."""
    if any(not isinstance(one, torch.Tensor) or not has_values(one) for one in factors):
        return False
    largest = max(one.numel() for one in factors)
    if not 1 < largest <= _LARGEST:
        return False
    for one in factors:
        if one.numel() == largest:
            low, high = (float(end) for end in one.detach().aminmax())
            if low < 0 or high > 1 or low == high:
                return False
    return True


def _is_outside(node: Any) -> bool:
    """Return True if some value of a quotient is clearly below zero or above one."""
    upper, lower = saved(node, "self"), saved(node, "other")
    if upper is None or lower is None or not has_values(upper) or not has_values(lower):
        return False
    ratio = upper.detach() / lower.detach()
    return bool(((ratio < -_SLACK) | (ratio > 1 + _SLACK)).any())


def _runs_across(path: _Path) -> bool:
    """Return True if a softmax runs over another dimension than that with one class for each of its positions."""
    node = path.node
    shape = tuple(node._input_metadata[0].shape)
    if node.name() != _SOFTMAX or len(shape) < _LEAST_RANK:
        return False
    saved_dim = int(node._saved_dim)
    dim = (saved_dim if saved_dim < 1 << 32 else saved_dim - (1 << 64)) % len(shape)
    for one in path.factors:
        if tuple(one.shape) != shape or not bool(((one == 0) | (one == 1)).all()):
            continue
        classes = [at for at in range(1, len(shape)) if bool((one.sum(at) <= 1).all())]
        spread = all(bool((one.sum(at) > 1).any()) for at in range(1, len(shape)) if at not in classes)
        if len(classes) == 1 and spread and bool((one.sum(classes[0]) == 1).any()):
            return dim != classes[0]
    return False
