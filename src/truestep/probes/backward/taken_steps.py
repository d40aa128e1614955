"""Updates by hand with gradients of ``autograd.grad``, known by the leaves that it was called for."""

from __future__ import annotations

from typing import Any, NamedTuple

from truestep.events import Site
from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import few_values, one_value, version
from truestep.seams.refs import Ref

_MOST_LINES = 8
_MOST_NODES = 5_000
_EARLY = 5
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

    A pass counts if it takes the gradients of a scalar for leaves alone, as that of ``torch.func.grad`` does. They are
    written to in place between two passes, or replaced by others near to them.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        from torch._C import _functorch

        self._scene = scene
        self._functions: Any = _functorch
        self._lines: dict[int, Leaf] = {}
        self._early: dict[int, int] = {}
        """Line to the number of its early passes that are left."""
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
        if before is None:
            return False
        if before.shapes != leaf.shapes:
            self._scene.sampling.follow()
            return False
        if before.ref() is leaf.ref():
            moved = (before.version, before.spot) != (leaf.version, leaf.spot)
        else:
            moved = _is_near(before.values, leaf.values) and self._takes_all(outputs, args, line)
            if not moved:  # other weights are trained
                self._scene.sampling.follow()
        if moved:
            self._training.add(line)
            self.site = site
        return moved

    def _takes_all(self, outputs: Any, args: tuple[Any, ...], line: int) -> bool:
        """Return True if a pass takes the gradients of all leaves of its loss: not those of samples for a model."""
        if line in self._training or self.is_transformed():
            return True
        given = set(map(id, args[3]))
        queue, seen = [outputs[0].grad_fn], 0
        met = set(queue)
        while queue and seen < _MOST_NODES:
            node, seen = queue.pop(), seen + 1
            if node is None or (hasattr(node, "variable") and id(node.variable) not in given):
                return False
            fresh = {following for following, _ in node.next_functions if following is not None} - met
            met |= fresh
            queue += fresh
        return not queue

    def trains(self, site: Site | None) -> bool:
        """Return True for a line of passes that updates follow."""
        return id(site) in self._training

    def is_early(self, site: Site | None) -> bool:
        """Return True for the first passes for leaves of a line, whether updates follow or not."""
        left = self._early.get(id(site), _EARLY) if id(site) in self._lines else 0
        self._early[id(site)] = max(0, left - 1)
        return left > 0

    def waits(self) -> bool:
        """Return True if the leaves of the latest pass with an update have moved since."""
        before = self._lines.get(id(self.site)) if self.site is not None else None
        leaf = None if before is None else before.ref()
        return before is not None and leaf is not None and (before.version, before.spot) != _state(leaf)

    def _leaf(self, outputs: Any, args: tuple[Any, ...]) -> Leaf | None:
        """Return the largest leaf of a pass for leaves alone; None for any other pass."""
        scene = self._scene
        inputs = args[3] if len(args) > 3 else ()
        if type(inputs) is not tuple or not inputs or scene.depth.step or scene.ledger.panels:
            return None
        if len(outputs) != 1 or outputs[0].numel() != 1:
            return None
        given = self._transformed(inputs) if self.is_transformed() else () if args[2] else self._plain(inputs)
        if not given:
            return None
        largest = max(given, key=scene.torch.Tensor.numel)
        shapes = tuple(tuple(one.shape) for one in given)
        return Leaf(Ref(largest), shapes, *_state(largest), few_values(largest))

    def _plain(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inputs of a call of ``autograd.grad`` if they are leaves, else nothing."""
        kinds = self._scene.torch.Tensor, self._scene.torch.nn.Parameter
        leaves = all(type(one) in kinds and one.is_leaf and one.requires_grad for one in inputs)
        return inputs if leaves else ()

    def is_transformed(self) -> bool:
        """Return True in a transformation of ``torch.func``."""
        return self._functions.peek_interpreter_stack() is not None

    def _transformed(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inputs of ``torch.func.grad`` as the program passed them; nothing inside of another one."""
        functions = self._functions
        stack = functions.get_interpreter_stack() or []
        if len(stack) != 1 or stack[0].key() != functions.TransformType.Grad:
            return ()
        if not all(functions.is_gradtrackingtensor(one) for one in inputs):
            return ()
        return tuple(map(functions.get_unwrapped, inputs))

    def value_of(self, root: Any) -> Any:
        """Return the loss of a pass as a plain tensor."""
        return self._functions.get_unwrapped(root) if self._functions.is_gradtrackingtensor(root) else root


def _state(leaf: Any) -> tuple[int, float | None]:
    return version(leaf), one_value(leaf)


def _is_near(before: Any, after: Any) -> bool:
    """Return True if the values of a leaf are those of another one after an update."""
    if before is None or after is None:
        return False
    gap = float((after - before).norm())
    return 0.0 < gap < _FARTHEST * float(before.norm())
