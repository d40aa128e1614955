"""Overlaps on the tape of a loss: quotients of sums, such as dice, IoU and Tversky, that expect probabilities.

Such a quotient is linear in the prediction above and below its line: products with constant targets, then sums; and the
sum of the targets is added below. With probabilities it is between zero and one. The scores of a layer have no range,
and the quotient no bound.
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
_DIVIDING = ("Split", "Unbind", "SafeSplit")
_THROUGH = ("Expand", "Upsample", *_DIVIDING)
_WEIGHING = ("MulBackward0", "BmmBackward0", "MmBackward0", "BaddbmmBackward0", "AddmmBackward0")
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
_LEAST_ADDED = 2
_MOST_IN_ALL = 4_000
_MOST_BETWEEN = 8


class _Path(NamedTuple):
    """A way down from a quotient, through linear operations."""

    node: Any
    reduced: bool = False
    """Whether a sum or a mean is above."""
    factors: tuple[Any, ...] = ()
    """Constants of the products below that sum."""
    added: int = 0
    """Constants that are added above that sum: that of the targets, a smoothing constant, a limit from below."""
    parts: tuple[Any, ...] = ()
    """Selections of a part of the result of the layer."""


def read_overlaps(scene: Scene, root: Any, site: Site | None) -> None:
    """Emit an event for the first overlap on the tape of a loss that is made of scores or of a softmax."""
    torch = scene.torch
    above = list(_above(root))
    of_logits = {made for node in above if node.name() in _OF_LOGITS for made in _before(node)}
    whole = {made for made, parts in of_logits if not parts}
    quotients = [node for node in above if _is_quotient(node)]
    for node in quotients[:_MOST_QUOTIENTS]:
        upper, lower = (list(_ends(following)) for following, _ in node.next_functions)
        ends, others = ({path.node for path in paths if path.node.name() != _LEAF} for paths in (upper, lower))
        if not ends or ends != others or not all(any(path.reduced for path in paths) for paths in (upper, lower)):
            continue
        added = max(path.added for path in lower)
        masked = [path for path in upper if path.reduced and path.factors and path.node in ends]
        if not masked or not all(_is_share(torch, path.factors) for path in masked):
            continue
        raw = all(end.name() in LAYERS for end in ends)
        read = {(path.node, path.parts) for path in (*upper, *lower) if path.node in ends}
        shared = raw and added > 0 and all(one in of_logits or one[0] in whole for one in read)
        # A constant may be a small number against a division by zero only: a share of a total has no other.
        if not shared and added < _LEAST_ADDED:
            continue
        crossed = not raw and any(_runs_across(path) and not _weighs(root, path.node) for path in masked)
        if raw or crossed:
            scene.tell(
                OverlapRead,
                site=site,
                scores=raw,
                shared=shared,
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


def _before(node: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the layers before an operation on logits, through views and resizing, with the selections of a part."""
    queue = [(*edge, ()) for edge in node.next_functions if edge[0] is not None]
    for _ in range(_MOST_NODES):
        if not queue:
            return
        one, number, parts = queue.pop()
        name = str(one.name())
        if name in LAYERS:
            yield one, parts
        elif name in RESHAPING or name in SELECTING or name == "AddBackward0" or name.startswith(_THROUGH):
            parts = (*parts, *_selected(one, number))
            queue += [(*edge, parts) for edge in one.next_functions if edge[0] is not None]


def _selected(node: Any, number: int) -> tuple[Any, ...]:
    """Return the part of its input that an operation selects; nothing for others."""
    match node.name():
        case "SelectBackward0":
            return (("select", node._saved_dim, node._saved_index),)
        case "SliceBackward0":
            return (("slice", node._saved_dim, node._saved_start, node._saved_end, node._saved_step),)
        case name if name in SELECTING:
            return (node,)
        case name if name.startswith(_DIVIDING):
            return ((name, number),)
    return ()


def _is_quotient(node: Any) -> bool:
    if node.name() != "DivBackward0":
        return False
    return len(node.next_functions) == 2 and all(following is not None for following, _ in node.next_functions)


def _ends(node: Any) -> list[_Path]:
    """Return the ways from a side of a quotient, through linear operations, to its inputs; none for others."""
    queue, found = [(_Path(node), 0)], list[_Path]()
    for _ in range(_MOST_NODES):
        if not queue:
            return found
        path, number = queue.pop()
        node = path.node
        name = str(node.name())
        inner = [edge for edge in node.next_functions if edge[0] is not None]
        if name in LAYERS or name in (_LEAF, _SOFTMAX):
            found.append(path)
        elif name.startswith(_SUMS):
            queue += [(path._replace(node=one, reduced=True), at) for one, at in inner]
        elif name in _FACTORS:
            if len(inner) != 1:
                return []
            factors = (*path.factors, _constant(node)) if path.reduced and name == "MulBackward0" else path.factors
            queue.append((path._replace(node=inner[0][0], factors=factors), inner[0][1]))
        elif name in _CLAMPS and not path.reduced:
            queue.append((path._replace(node=inner[0][0], added=path.added + 1), inner[0][1]))
        elif name in _LINEAR or name in RESHAPING or name in SELECTING or name.startswith(_THROUGH):
            more = name == "AddBackward0" and not path.reduced and len(inner) < len(node.next_functions)
            path = path._replace(added=path.added + more, parts=(*path.parts, *_selected(node, number)))
            queue += [(path._replace(node=one), at) for one, at in inner]
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
    if node.name() != _SOFTMAX or len(shape) < _LEAST_RANK or _is_merged(node.next_functions[0][0]):
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


def _is_merged(node: Any) -> bool:
    """Return True if several dimensions were made one by a view behind this result, as those of an image."""
    while node is not None and node.name() in RESHAPING:
        before, number = node.next_functions[0]
        if before is None:
            return False
        if "View" in node.name() or "Reshape" in node.name():
            shapes = node._input_metadata[0].shape, before._input_metadata[number].shape
            if len(shapes[0]) < len(shapes[1]):
                return True
        node = before
    return False


def _weighs(root: Any, softmax: Any) -> bool:
    """Return True if a softmax is also a factor of a product with another result, as weights of attention are."""
    queue, seen = deque([root]), {root}
    while queue:
        node = queue.popleft()
        inner = [following for following, _ in node.next_functions if following is not None]
        if node.name() in _WEIGHING and len(inner) > 1 and any(_leads_to(one, softmax) for one in inner):
            return True
        for one in inner:
            if one not in seen:
                seen.add(one)
                queue.append(one)
        if len(seen) > _MOST_IN_ALL:
            return True
    return False


def _leads_to(node: Any, softmax: Any) -> bool:
    for _ in range(_MOST_BETWEEN):
        if node is None or node is softmax or node == softmax:
            return node is not None
        if node.name() != "MulBackward0" and node.name() not in RESHAPING and not node.name().startswith("Expand"):
            return False
        node = next((following for following, _ in node.next_functions if following is not None), None)
    return False
