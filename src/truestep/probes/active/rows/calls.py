"""The calls of models in a step, and those that a tensor was computed from, read from its graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from truestep.events import Site
from truestep.probes.active.rows.fetched import sampled
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import Node, has_values, key_of
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.active.rows.fetched import Located
    from truestep.probes.active.rows.lookup import Found

_MOST_CALLS = 16
_MOST_CELLS = 1 << 20
_MOST_NODES = 2_000
_MOVING = ("IndexBackward", "TakeBackward", "MaskedSelect", "Repeat", "Scatter", "IndexPut")
"""Operations that can give the rows another order."""
_ALONG = ("Gather", "Sort", "Topk", "Cat", "Stack", "IndexSelect", "Unbind", "Flip", "Roll", "Split")
"""Those that keep the rows if they are along another dimension than the first."""
_LAST = (1 << 64) - 1
"""The dimension -1 of an operation."""
_FAR = 1 << 32
"""Dimensions beyond it are negative ones."""
_MOST_CHAIN = 20


@dataclass(slots=True)
class Made:
    """A call of a model that has returned."""

    model: int
    site: Site | None
    nodes: frozenset[Node]
    """The last operations of its results."""
    results: list[Ref]
    found: list[Found] = field(default_factory=list)
    """Tables with the rows of its input."""
    located: Located | None = None
    """Rows of a fetched batch that its input has."""
    given: list[Any] = field(default_factory=list)
    """Values of its arguments."""
    values: dict[tuple[Node, int], Any] = field(default_factory=dict)
    """Values of its results, by their operation and its output."""


class Calls:
    """The calls of the current step.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._step = -1
        self.kept: list[Made] = []

    def begin(self) -> None:
        """Forget the calls of other steps."""
        if self._scene.sampling.step != self._step:
            self._step, self.kept = self._scene.sampling.step, []

    def returned(self, model: int, site: Site | None, result: Any) -> Made:
        """Record a call that has returned."""
        self.begin()
        results = list(_tensors(self._scene.torch, result, 0))
        nodes = frozenset(key_of(one.grad_fn) for one in results if one.grad_fn is not None)
        made = Made(model, site, nodes, [Ref(one) for one in results])
        for one in results:
            plain = one.is_cpu and one.grad_fn is not None and one.dim() and 1 < one.numel() <= _MOST_CELLS
            if plain and has_values(one) and not one.is_complex():
                made.values[key_of(one.grad_fn), int(one.output_nr)] = sampled(self._scene, one, len(one))
        self.kept = [*self.kept[-_MOST_CALLS + 1 :], made]
        return made

    def of(self, value: Any) -> list[Made] | None:
        """Return the calls that a tensor was computed from; None if its rows can be in another order than theirs."""
        self.begin()
        direct = [made for made in self.kept if any(ref() is value for ref in made.results)]
        return direct[-1:] if direct else self._below(value.grad_fn)

    def order(self, value: Any) -> Located | None:
        """Return the row of a fetched batch that each row of a tensor was computed from."""
        made = self.of(value)
        return self._joined(value.grad_fn) if made is None else _common(made)

    def order_of(self, node: Any) -> Located | None:
        """Return the same for the tensor that an operation made."""
        made = self._below(node)
        return self._joined(node) if made is None else _common(made)

    def _below(self, node: Any) -> list[Made] | None:
        wanted = {last: made for made in self.kept for last in made.nodes}
        found: list[Made] = []
        seen: set[Node] = set()
        queue = [node] if node is not None else []
        while queue and len(seen) < _MOST_NODES:
            node = queue.pop()
            key = key_of(node)
            if key in seen:
                continue
            seen.add(key)
            if key in wanted:
                if all(made is not wanted[key] for made in found):
                    found.append(wanted[key])
                continue
            if _moves(node):
                return None
            queue += [following for following, _ in node.next_functions if following is not None]
        return found

    def _joined(self, node: Any) -> Located | None:
        """Return the rows of results that were computed for parts of a batch and joined."""
        for _ in range(_MOST_CHAIN):
            name = "" if node is None else str(node.name())
            if not name:
                return None
            if name.startswith("Cat") and _moves(node):
                break
            if _moves(node):
                return None
            node = next((following for following, _ in node.next_functions if following is not None), None)
        else:
            return None
        parts = [_common(self._below(following) or []) for following, _ in node.next_functions]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or any(part.field is not known[0].field for part in known):
            return None
        return replace(known[0], places=self._scene.torch.cat([part.places for part in known]))


def _common(made: list[Made]) -> Located | None:
    """Return the rows that all calls have in common; None if one of them has others, or unknown ones."""
    located = [one.located for one in made]
    first = located[0] if located else None
    if first is None:
        return None
    for one in located[1:]:
        if one is None or one.batch is not first.batch or one.places.shape != first.places.shape:
            return None
        if not bool((one.places == first.places).all()):
            return None
    return first


def _moves(node: Any) -> bool:
    """Return True for an operation that can give the rows of a tensor another order."""
    name = str(node.name())
    if name.startswith(_ALONG):
        dims = getattr(node, "_saved_dims", None) or (getattr(node, "_saved_dim", 0),)
        return any(dim == 0 or _FAR < dim < _LAST for dim in dims)
    return name.startswith(_MOVING)


def _tensors(torch: Any, result: Any, depth: int) -> Iterator[Any]:
    """Yield the tensors of a result."""
    if type(result) is torch.Tensor:
        yield result
    elif depth < 2 and isinstance(result, tuple | list):
        for part in result[:8]:
            yield from _tensors(torch, part, depth + 1)
    elif depth < 2 and issubclass(type(result), dict):
        for part in list(dict.values(result))[:8]:
            yield from _tensors(torch, part, depth + 1)
