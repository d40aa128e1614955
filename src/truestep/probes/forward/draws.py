"""Samples without a gradient, of distributions with one.

A sample counts where a module gets it, alone or beside other columns, and where the loss reaches both this module and
the parameters of the distribution. Samples with a probability in the loss (policy gradients) do not count.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep.events import SampleUsed, Site
from truestep.probes.context.values import has_values
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_KEY = "truestep distribution"
"""Key in the metadata of the operations that made the parameters of a distribution."""
_LEAF = "torch::autograd::AccumulateGrad"
_MOST = 32
_MOST_NODES = 5_000
_MOST_INNER = 3


class _Draw(NamedTuple):
    sample: Ref
    distribution: weakref.ref[Any]
    kind: str
    site: Site | None
    before: frozenset[int]
    """Parameters that the distribution was computed with: a module with one of these gets its own predictions."""


class Draws:
    """The samples of a sampled step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._drawn: dict[int, _Draw] = {}
        self._used: dict[int, tuple[_Draw, frozenset[int]]] = {}
        """Draws that a module got, with the parameters of the module."""
        self._scored: weakref.WeakSet[Any] = weakref.WeakSet()
        """Distributions that gave a probability."""

    def add(self, distribution: Any, sample: Any, site: Site | None) -> None:
        """Enter a sample, and mark the operations that made the parameters of its distribution."""
        made = [value.grad_fn for value in _parameters(distribution) if _has_graph(value)]
        before = self._before(made) if made and distribution not in self._scored else None
        if len(self._drawn) >= _MOST:
            self._drawn.clear()
        if before is not None:
            for node in made:
                for one in (node, *(following for following, _ in node.next_functions)):
                    if one is not None:
                        one.metadata[_KEY] = True
            kind = type(distribution).__name__
            self._drawn[id(sample)] = _Draw(Ref(sample), weakref.ref(distribution), kind, site, before)

    def _before(self, nodes: list[Any]) -> frozenset[int] | None:
        """Return the parameters behind operations of the tape; None if there are too many operations."""
        queue, seen, found = [*nodes], set(nodes), set()
        while queue:
            node = queue.pop()
            if node.name() == _LEAF:
                found.add(self._scene.hold(node.variable).number)
            fresh = {following for following, _ in node.next_functions if following is not None} - seen
            seen |= fresh
            queue += fresh
            if len(seen) > _MOST_NODES:
                return None
        return frozenset(found)

    def scored(self, distribution: Any, value: Any) -> None:
        """Remove the samples of a distribution that gives a probability, and the samples that get one."""
        self._scored.add(distribution)
        for key, draw in [*self._drawn.items()]:
            if draw.distribution() is distribution or draw.sample() is value:
                del self._drawn[key]
                self._used.pop(key, None)

    def passed(self, module: Any, args: tuple[Any, ...]) -> None:
        """Enter that a module gets samples."""
        tensors = [one for one in args if isinstance(one, self._scene.torch.Tensor) and not one.requires_grad]
        for key, draw in self._drawn.items() if tensors else ():
            sample = draw.sample()
            if sample is not None and any(self._holds(one, sample) for one in tensors):
                numbers = frozenset(self._scene.hold(p).number for p in module.parameters() if p.requires_grad)
                if numbers.isdisjoint(draw.before):
                    self._used[key] = draw, numbers

    def _holds(self, tensor: Any, sample: Any) -> bool:
        """Return True if a tensor is a sample, or has its columns at its beginning or end."""
        if tensor is sample:
            return True
        if tensor.dim() < 2 or tensor.shape[:-1] != sample.shape[:-1] or tensor.dtype != sample.dtype:
            return False
        if tensor.device != sample.device or not (has_values(tensor) and has_values(sample)):
            return False
        equal, width = self._scene.torch.equal, sample.shape[-1]
        return width > 0 and bool(equal(tensor[..., :width], sample) or equal(tensor[..., -width:], sample))

    @property
    def pending(self) -> bool:
        """Return True if a module got a sample since the last backward pass."""
        return bool(self._used)

    def tell(self, reached: dict[int, int], marked: bool, site: Site | None) -> None:
        """Emit the samples behind which a loss trains a module, if it trains their distribution as well."""
        for draw, numbers in self._used.values() if marked else ():
            if not numbers.isdisjoint(reached):
                self._scene.tell(
                    SampleUsed, kind=draw.kind, parameters=tuple(sorted(numbers)), site=draw.site, loss=site
                )
        self._drawn.clear()
        self._used.clear()
        self._scored.clear()


def is_marked(node: Any) -> bool:
    """Return True if an operation made a parameter of a distribution with a sample in this step."""
    return _KEY in node.metadata


def _parameters(distribution: Any) -> Iterator[Any]:
    """Yield the attributes of a distribution, and of those inside of it."""
    for _ in range(_MOST_INNER):
        yield from vars(distribution).values()
        distribution = getattr(distribution, "base_dist", None)
        if distribution is None:
            return


def _has_graph(value: Any) -> bool:
    return getattr(value, "grad_fn", None) is not None
