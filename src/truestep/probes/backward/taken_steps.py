"""Updates by hand with gradients of ``autograd.grad``, known by the leaves that it was called for."""

from __future__ import annotations

from typing import Any, NamedTuple

from truestep.events import Site
from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import few_values, one_value, version
from truestep.seams.refs import Ref

_MOST_LINES = 8
_FARTHEST = 0.5
"""Largest difference of new leaves to those before them, by their norm: an update; other ones are drawn again."""


class Leaf(NamedTuple):
    """The largest of the leaves of a pass."""

    ref: Ref
    shapes: tuple[tuple[int, ...], ...]
    """Shapes of all leaves of the pass."""
    version: int
    spot: float | None
    values: Any


class TakenSteps:
    """Finds the updates between two passes of ``autograd.grad`` of one line, in a program without an optimizer.

    A pass counts if it takes the gradients of a scalar for leaves alone. The leaves are written to in place between
    two of them, or replaced by others near to them.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._lines: dict[int, Leaf] = {}
        self._training: set[int] = set()
        """Lines with a pass after an update."""
        self.site: Site | None = None
        """Line of the pass that found the latest update."""

    def moved(self, outputs: Any, args: tuple[Any, ...], site: Site | None) -> bool:
        """Return True if the leaves of this pass were updated since the pass before at its line."""
        line = id(site)
        leaf = self._leaf(outputs, args) if line in self._lines or len(self._lines) < _MOST_LINES else None
        if leaf is None:
            return False
        before, self._lines[line] = self._lines.get(line), leaf
        if before is None or before.shapes != leaf.shapes:
            return False
        if before.ref() is leaf.ref():
            moved = (before.version, before.spot) != (leaf.version, leaf.spot)
        else:
            moved = _is_near(before.values, leaf.values)
        if moved:
            self._training.add(line)
            self.site = site
        return moved

    def trains(self, site: Site | None) -> bool:
        """Return True for a line of passes that updates follow."""
        return id(site) in self._training

    def waits(self) -> bool:
        """Return True if the leaves of the latest pass with an update have moved since."""
        before = self._lines.get(id(self.site)) if self.site is not None else None
        leaf = None if before is None else before.ref()
        return before is not None and leaf is not None and (before.version, before.spot) != _state(leaf)

    def _leaf(self, outputs: Any, args: tuple[Any, ...]) -> Leaf | None:
        """Return the largest leaf of a pass for leaves alone; None for any other pass."""
        scene = self._scene
        inputs = args[3] if len(args) > 3 else ()
        if type(inputs) is not tuple or not inputs or args[2] or scene.depth.step or scene.ledger.panels:
            return None
        if len(outputs) != 1 or outputs[0].numel() != 1 or scene.torch._C._functorch.peek_interpreter_stack():
            return None
        kinds = scene.torch.Tensor, scene.torch.nn.Parameter
        if not all(type(one) in kinds and one.is_leaf and one.requires_grad for one in inputs):
            return None
        largest = max(inputs, key=scene.torch.Tensor.numel)
        shapes = tuple(tuple(one.shape) for one in inputs)
        return Leaf(Ref(largest), shapes, *_state(largest), few_values(largest))


def _state(leaf: Any) -> tuple[int, float | None]:
    return version(leaf), one_value(leaf)


def _is_near(before: Any, after: Any) -> bool:
    """Return True if the values of a leaf are those of another one after an update."""
    if before is None or after is None:
        return False
    gap = float((after - before).norm())
    return 0.0 < gap < _FARTHEST * float(before.norm())
