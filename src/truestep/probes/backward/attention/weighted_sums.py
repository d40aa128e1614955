"""Softmaxes with a use that shows their dimension: weights of self-attention by hand, and scores that labels pick from.

The weights of a query are those of all keys, and sum to one. The tape has the dimension of the softmax, and the product
of matrices behind it, which sums over the last dimension of its first factor. Where a number stands that is the same
for all positions but those along the softmax shows whether both are one dimension, also behind views.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from truestep.events import Site, SoftmaxRead
from truestep.probes.backward.loss_terms.mask_forms import VIEWS, carried, signed
from truestep.probes.backward.loss_terms.masked import Softmax, is_dropout, softmaxes, uses
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.sampling import FirstReads
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import saved

_MATRICES = ("BmmBackward0", "MmBackward0")
_LINEAR = {"AddmmBackward0": "mat1", "MmBackward0": "self"}
_SOFTMAX = "SoftmaxBackward0"
_LEAF = "torch::autograd::AccumulateGrad"
_BEFORE = VIEWS | {
    "MaskedFillBackward0", "WhereBackward0", "AddBackward0", "SubBackward0", "DivBackward0", "MulBackward0",
    "ClampBackward1", "NativeDropoutBackward0",
}  # fmt: skip
"""Operations between the scores and their softmax: masks, biases of positions, and a temperature."""
_MOST_BEFORE = 24
_MOST_SOURCES = 40
_MOST_VALUES = 1 << 24
_LEAST_RANK = 2


class WeightedSums:
    """Reads the attention on the tapes of the first losses of each line."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._reads = FirstReads()

    def look(self, root: Any, site: Site | None) -> None:
        """Emit an event for self-attention on the tape of a loss: one of a wrong dimension, or else the nearest."""
        if root is None or not self._reads.is_next(site):
            return
        all_of_loss = list(softmaxes(root))
        found = [read for one in all_of_loss if (read := self._read(one, site)) is not None]
        if found:
            self.scene.emit(next((one for one in found if one.over != "keys"), found[0]))
        picked = [read for one in all_of_loss if (read := self._picked(one, site)) is not None]
        if picked:
            self.scene.emit(next((one for one in picked if one.over == "samples"), picked[0]))

    def _read(self, one: Softmax, site: Site | None) -> SoftmaxRead | None:
        """Return the dimensions of a softmax and of the sum behind it, if its scores compare positions of one input."""
        node, torch = one.node, self.scene.torch
        shape = shape_of(node)
        if str(node.name()) != _SOFTMAX or len(shape) < _LEAST_RANK:
            return None
        scores = _product(node)
        if scores is None or not _of_one_input(scores):
            return None
        sizes, dim = shape_of(scores), signed(int(node._saved_dim))
        if sizes[-1] != sizes[-2] or sizes[-1] <= 1:
            return None
        overs = set()
        for user, at, path in uses(one):
            if str(user.name()) in VIEWS or is_dropout(user):
                continue
            if str(user.name()) not in _MATRICES or any(str(step.name()) == "DivBackward0" for step in path):
                return None  # divided by sums along the other dimension, or used in another way
            if not _is_of_values(user, at):
                return None
            overs.add(_over(torch, shape, dim, at, path))
        if len(overs) != 1 or None in overs:
            return None
        over = overs.pop() or ""
        files = tuple(self.scene.sites.own_files()) if over != "keys" else ()
        return SoftmaxRead(site=site, over=over, shape=shape, dim=dim, files=files)

    def _picked(self, one: Softmax, site: Site | None) -> SoftmaxRead | None:
        """Return the dimension of a softmax from which labels pick one value for each row; None for other uses."""
        node, shape = one.node, shape_of(one.node)
        if len(shape) != _LEAST_RANK or shape[0] == shape[1] or min(shape) < _LEAST_RANK:
            return None
        users = [user for user, _ in one.users.get(node, ())]
        if not users or not all(_picks_of_rows(self.scene.torch, user, shape[0]) for user in users):
            return None
        dim = signed(int(node._saved_dim))
        over = "classes" if dim % len(shape) else "samples"
        files = tuple(self.scene.sites.own_files()) if over == "samples" else ()
        return SoftmaxRead(site=site, use="labels", over=over, shape=shape, dim=dim, files=files)


def _picks_of_rows(torch: Any, node: Any, rows: int) -> bool:
    """Return True for an operation that takes one value of each row, each at another place."""
    name = str(node.name())
    if name == "GatherBackward0":
        index = saved(node, "index")
        if (
            type(index) is not torch.Tensor
            or tuple(index.shape) != (rows, 1)
            or signed(int(node._saved_dim)) not in (1, -1)
        ):
            return False
        labels = index[:, 0]
    elif name == "IndexBackward0":
        indices = saved(node, "indices")
        if not isinstance(indices, tuple | list) or len(indices) != _LEAST_RANK:
            return False
        first, labels = indices
        whole = [one for one in indices if type(one) is torch.Tensor and one.dtype is torch.int64 and one.dim() == 1]
        if len(whole) != _LEAST_RANK or first.numel() != rows or labels.numel() != rows:
            return False
        if not torch.equal(first, torch.arange(rows, device=first.device)):
            return False
    else:
        return False
    return bool((labels != labels[0]).any())


def _over(torch: Any, shape: tuple[int, ...], dim: int, at: int, path: tuple[Any, ...]) -> str | None:
    """Return the dimension of a softmax: "keys" that the product sums over, "queries", "samples" or "heads".

    Return None if it is unknown.
    """
    along = dim % len(shape)
    if torch.Size(shape).numel() > _MOST_VALUES:
        return None
    with torch.no_grad():
        numbers = torch.arange(shape[along], dtype=torch.int32)
        numbers = numbers.view([-1 if each == along else 1 for each in range(len(shape))]).expand(shape)
        behind = carried(numbers, [step for step in path if not is_dropout(step)])
        if behind is None or behind.dim() < _LEAST_RANK:
            return None
        summed, other = (-2, -1) if at else (-1, -2)
        varies = [bool((behind != behind.select(each, 0).unsqueeze(each)).any()) for each in range(behind.dim())]
    if varies[summed]:
        return "keys" if sum(varies) == 1 else None
    if varies[other]:
        return "queries" if sum(varies) == 1 else None
    if not any(varies):
        return "one" if along else None
    return "samples" if along == 0 and sum(varies) == 1 else "heads" if along else None


def _product(softmax: Any) -> Any:
    """Return the product of two tensors with a gradient that made the scores of a softmax; None for other scores."""
    queue, seen = deque(following for following, _ in softmax.next_functions), 0
    while queue and seen < _MOST_BEFORE:
        node, seen = queue.popleft(), seen + 1
        if node is None:
            continue
        name = str(node.name())
        if name in _MATRICES:
            return node if all(_is_computed(following) for following, _ in node.next_functions) else None
        if name in _BEFORE:
            queue.extend(following for following, _ in node.next_functions)
    return None


def _is_computed(node: Any) -> bool:
    """Return True for a tensor with a gradient that is not a parameter, or a view of one."""
    while node is not None and str(node.name()) in VIEWS:
        node = node.next_functions[0][0]
    return node is not None and str(node.name()) != _LEAF


def _is_of_values(product: Any, at: int) -> bool:
    """Return True if the other factor of a product of weights was computed from inputs, and not by another softmax."""
    node = product.next_functions[1 - at][0]
    while node is not None and str(node.name()) in VIEWS:
        node = node.next_functions[0][0]
    if node is None:
        return saved(product, "self" if at else "mat2") is not None
    return str(node.name()) not in (_LEAF, _SOFTMAX)


def _of_one_input(product: Any) -> bool:
    """Return True if both factors of a product are made of one tensor: queries and keys of the same positions."""
    first, second = (list(_sources(following)) for following, _ in product.next_functions)
    met = set(first)
    if any(node in met for node in second):
        return True
    given = {one for node in first if (one := _input(node)) is not None}
    return any(_input(node) in given for node in second)


def _sources(node: Any) -> Iterator[Any]:
    """Yield the nearest operations that a tensor is made of."""
    queue, seen = deque([node]), {node}
    while queue and len(seen) < _MOST_SOURCES:
        node = queue.popleft()
        if str(node.name()) == _LEAF:
            continue
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def _input(node: Any) -> tuple[int, int] | None:
    """Return where the input of a linear layer lies in memory, if it has no gradient."""
    part = _LINEAR.get(str(node.name()))
    value = None if part is None else saved(node, part)
    return None if value is None or not value.numel() else (value.data_ptr(), value.numel())
