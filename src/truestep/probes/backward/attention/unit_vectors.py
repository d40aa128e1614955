"""Products of unit vectors, such as cosines by hand: along which dimension of a layer's output they have a norm of one.

The default of ``normalize`` is the second dimension, which is that of the features in a batch of vectors, and that of
the positions in a batch of sequences. A product of matrices then sums over features that have no norm of one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from truestep.events import Site, UnitVectorsRead
from truestep.probes.backward.loss_terms.mask_forms import VIEWS, carried, signed
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.sampling import FirstReads
from truestep.probes.context.scene import Scene

_PRODUCTS = ("BmmBackward0", "MmBackward0")
_LAYERS = ("AddmmBackward0", "MmBackward0", "NativeLayerNormBackward0", "EmbeddingBackward0")
"""Operations with the features in the last dimension of their result."""
_SAME = frozenset(
    {
        "ReluBackward0", "GeluBackward0", "TanhBackward0", "SiluBackward0", "LeakyReluBackward0", "EluBackward0",
        "AddBackward0", "NativeDropoutBackward0",
    }
)  # fmt: skip
"""Operations that leave each value where it is."""
_SCALING = ("DivBackward0", "MulBackward0")
_BETWEEN = ("ExpandBackward0", "ClampMinBackward0", "AddBackward0")
_NORMS = ("LinalgVectorNormBackward0", "NormBackward1")
_MOST_NODES = 5_000
_MOST_BETWEEN = 8
_MOST_VALUES = 1 << 24
_LEAST_RANK = 3


_Step = tuple[Any, int]
"""An operation, and which of its outputs is used."""


class _Factor(NamedTuple):
    """A factor of a product that a layer made and a norm divided."""

    dim: int
    """Dimension of the norm."""
    shape: tuple[int, ...]
    """That of the vectors where they are divided."""
    along: bool
    """Whether the product sums over that dimension."""
    features: bool
    """Whether the product sums over features of the layer, and over nothing else."""


class UnitVectors:
    """Reads the products of unit vectors on the tapes of the first losses of each line."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._reads = FirstReads()

    def look(self, root: Any, site: Site | None) -> None:
        """Emit an event for the products of a loss with two factors of unit vectors: the first wrong one, or another.

        Wrong are norms along another dimension than that of the features, which the product sums over.
        """
        if root is None or not self._reads.is_next(site):
            return
        found = [read for node in _products(root) if (read := self._read(node)) is not None]
        if found:
            wrong, one = next((read for read in found if read[0]), found[0])
            files = tuple(self.scene.sites.own_files()) if wrong else ()
            self.scene.emit(UnitVectorsRead(site=site, apart=wrong, shape=one.shape, dim=one.dim, files=files))

    def _read(self, product: Any) -> tuple[bool, _Factor] | None:
        """Return whether both norms run along other dimensions than the sum over features, and the first factor."""
        both = []
        for at, summed in ((0, -1), (1, -2)):
            node, output = product.next_functions[at]
            factor = self._factor(node, output, summed)
            if factor is None:
                return None
            both.append(factor)
        if not all(one.features for one in both):
            return None
        return not any(one.along for one in both), both[0]

    def _factor(self, node: Any, output: int, summed: int) -> _Factor | None:
        """Return the facts of a factor, from the operations between the layer and the product."""
        behind: list[_Step] = []
        for _ in range(_MOST_BETWEEN):
            if node is None:
                return None
            vectors = _divided(node)
            if vectors is not None:
                break
            if str(node.name()) in VIEWS or str(node.name()) in _PARTS:
                behind.insert(0, (node, output))
            elif not _is_scaled(node):
                return None
            node, output = node.next_functions[0]
        else:
            return None
        norm, before, number = vectors
        shape, dims = shape_of(node), [signed(int(dim)) for dim in norm._saved_dim]
        if len(shape) < _LEAST_RANK or len(dims) != 1 or self.scene.torch.Size(shape).numel() > _MOST_VALUES:
            return None
        made = _made(before, number)
        if made is None:
            return None
        layer, between = made
        along = self._sums_over(shape, dims[0], behind, summed)
        features = self._sums_over(layer, len(layer) - 1, [*between, *behind], summed)
        others = [self._sums_over(layer, dim, [*between, *behind], summed) for dim in range(len(layer) - 1)]
        if None in (along, features, *others):
            return None
        return _Factor(dims[0] % len(shape), shape, bool(along), bool(features) and not any(others))

    def _sums_over(self, shape: tuple[int, ...], dim: int, path: list[_Step], summed: int) -> bool | None:
        """Return True if a product sums over positions of a dimension, as they lie behind a path; None if unknown."""
        torch = self.scene.torch
        with torch.no_grad():
            numbers = torch.arange(shape[dim], dtype=torch.int32)
            numbers = numbers.view([-1 if each == dim % len(shape) else 1 for each in range(len(shape))]).expand(shape)
            behind = numbers
            for node, output in path:
                part = _PARTS.get(str(node.name()))
                behind = carried(behind, [node]) if part is None else part(behind, node, output)
                if behind is None:
                    return None
            return behind.dim() >= -summed and bool((behind != behind.select(summed, 0).unsqueeze(summed)).any())


def _products(root: Any) -> list[Any]:
    """Return the products of two matrices of a tape, both with a gradient."""
    queue, seen, found = deque([root]), {root}, []
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        if str(node.name()) in _PRODUCTS and all(following is not None for following, _ in node.next_functions):
            found.append(node)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return found


def _divided(node: Any) -> tuple[Any, Any, int] | None:
    """Return the norm by which an operation divides vectors, and the output of which operation they are; else None."""
    if str(node.name()) != "DivBackward0" or len(node.next_functions) < 2:
        return None
    (vectors, output), (norm, _) = node.next_functions[:2]
    for _ in range(_MOST_BETWEEN):
        if norm is None or vectors is None:
            return None
        if str(norm.name()) in _NORMS:
            return (norm, vectors, output) if norm.next_functions[0] == (vectors, output) else None
        if str(norm.name()) not in _BETWEEN:
            return None
        norm = norm.next_functions[0][0]
    return None


def _is_scaled(node: Any) -> bool:
    """Return True for a product or quotient with one number, such as a temperature."""
    if str(node.name()) not in _SCALING:
        return False
    follows = [following for following, _ in node.next_functions]
    return follows[0] is not None and (len(follows) < 2 or follows[1] is None or not shape_of(follows[1]))


def _made(node: Any, output: int) -> tuple[tuple[int, ...], list[_Step]] | None:
    """Return the shape of the output of the layer that made a tensor, and the steps behind it; None for others."""
    path: list[_Step] = []
    for _ in range(2 * _MOST_BETWEEN):
        if node is None:
            return None
        name = str(node.name())
        if name in _LAYERS:
            return shape_of(node), path
        if name in VIEWS or name in _PARTS:
            path.insert(0, (node, output))
        elif name not in _SAME or shape_of(node) != shape_of(node.next_functions[0][0] or node):
            return None
        node, output = node.next_functions[0]
    return None


def _selected(numbers: Any, node: Any, output: int) -> Any:
    return numbers.select(signed(int(node._saved_dim)), signed(int(node._saved_index)))


def _unbound(numbers: Any, node: Any, output: int) -> Any:
    return numbers.unbind(signed(int(node._saved_dim)))[output]


def _split(numbers: Any, node: Any, output: int) -> Any:
    return numbers.split(int(node._saved_split_size), signed(int(node._saved_dim)))[output]


_PARTS: dict[str, Callable[[Any, Any, int], Any]] = {
    "SelectBackward0": _selected,
    "UnbindBackward0": _unbound,
    "SplitBackward0": _split,
}
"""Operations that take a part of a tensor, such as the queries of a layer for queries, keys and values."""
