"""Targets of a loss with a gradient to the model that the loss trains, as in Q-learning.

The tape shows both operands of a squared or absolute error. A target of this kind is a number without a gradient, such
as a reward, plus a value of the next state times a discount. Other errors between two outputs of one model (two views,
two times of an equation) have neither a choice of the largest value nor a mask of ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from truestep.events import Site, TargetFollowed
from truestep.probes.backward.loss_terms.terms import leaves_below
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.origins import place_of, stored_by

ERRORS = frozenset({"MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss"})
_TO_ERROR = frozenset({
    "Mean", "Sum", "Neg", "Mul", "Div", "Add", "Sub", "Pow", "Abs", "Squeeze", "View", "ReshapeAlias", "Clamp",
})  # fmt: skip
_VALUES = frozenset({
    "Add", "Sub", "Mul", "Squeeze", "Unsqueeze", "View", "UnsafeView", "ReshapeAlias", "Expand", "Clone", "Where",
    "MaskedFill", "Select", "Slice", "Index", "IndexPut", "CopySlices", "Stack", "Cat", "ToCopy", "Transpose", "T",
})  # fmt: skip
"""Operations between a target and the value of the next state."""
_CHOICES = frozenset({"Max", "Amax", "Minimum", "Min", "Amin", "Gather"})
_WRITES = ("IndexPut", "CopySlices")
"""Writes into a part of a tensor."""
_MOST_NODES = 64
_MOST_CELLS = 1 << 16
_LEAST_DISCOUNT = 0.5


@dataclass(slots=True)
class _Chain:
    """Operations from a target down to the value of the next state."""

    nodes: list[Any]
    added: bool = False
    discounted: bool = False
    chosen: bool = False
    masked: bool = False

    @property
    def is_target(self) -> bool:
        return self.added and self.discounted and (self.chosen or self.masked)


class FollowedTargets:
    """Emits `TargetFollowed`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def look(self, node: Any, frame: FrameType | None, site: Site | None) -> None:
        """Look at the errors that a backward pass starts from.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
        """
        constant = False
        for error, one, two in _errors(node):
            constant |= two is None
            for target, other in ((two, one), (one, two)) if two is not None else ():
                chain = self._chain(target)
                if chain.is_target and not leaves_below([target]).isdisjoint(leaves_below([other])):
                    name, made = variable_of(self._scene, frame, [node, error, *chain.nodes], known=2)
                    self._scene.tell(TargetFollowed, site=site, made=made, name=name)
                    return
        if constant:
            self._scene.tell(TargetFollowed, site=site, gradient=False)

    def _chain(self, node: Any) -> _Chain:
        chain = _Chain([])
        while node is not None and len(chain.nodes) < _MOST_NODES:
            kind = kind_of(node)
            inner = [following for following, _ in node.next_functions if following is not None]
            alone = len(node.next_functions) > len(inner) == 1
            if kind not in _CHOICES and (kind not in _VALUES or (kind in ("Add", "Sub", "Mul") and not alone)):
                break
            chain.nodes.append(node)
            chain.chosen |= kind in _CHOICES
            chain.added |= kind in ("Add", "Sub")
            chain.masked |= kind in ("Where", "MaskedFill", *_WRITES)
            if kind == "Mul":
                self._scaled(node, chain)
            node = inner[0] if inner else None
        return chain

    def _scaled(self, node: Any, chain: _Chain) -> None:
        """Record if a factor of a product is a discount, a mask of ends, or both."""
        try:
            factor = node._saved_self if node._saved_self is not None else node._saved_other
        except RuntimeError:  # the graph was freed
            return
        if factor is None or not factor.is_cpu or not 0 < factor.numel() <= _MOST_CELLS or factor.requires_grad:
            return
        most, least = float(factor.max()), float(factor.min())
        known = bool(((factor == 0) | (factor == most)).all())
        if known and _LEAST_DISCOUNT <= most <= 1.0:
            chain.masked |= least == 0.0
            chain.discounted |= most < 1.0


def variable_of(scene: Scene, frame: FrameType | None, nodes: list[Any], known: int = 0) -> tuple[str, Site | None]:
    """Return the last variable of the given operations, from the loss to the model, and the line that stores it.

    Args:
        scene: the scene.
        frame: the user's frame with the variables.
        nodes: the operations.
        known: number of first operations whose variables have a place, but no name.
    """
    if frame is None:
        return "", None
    tensor = scene.torch.Tensor
    tensors = {
        name: value
        for name, value in variables(frame).items()
        if isinstance(value, tensor) and value.grad_fn is not None
    }
    for node in reversed(nodes):
        partly = kind_of(node) in _WRITES  # the statement that stores it is an earlier one
        for name, value in tensors.items():
            statement = stored_by(frame, name) if value.grad_fn is node and not partly else None
            if isinstance(statement, ast.Assign):
                return name if node in nodes[known:] else "", place_of(frame.f_code, statement.value)
    return "", None


def _errors(node: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the errors below a loss with their operands; the second is None if only one has a gradient."""
    queue = [] if node is None else [(node, False)]
    for _ in range(_MOST_NODES):
        if not queue:
            return
        current, squared = queue.pop()
        kind = kind_of(current)
        inner = [following for following, _ in current.next_functions if following is not None]
        product = kind == "Mul" and len(inner) == 2 and inner[0] is inner[1]
        if inner and (kind in ERRORS or (squared and kind == "Sub")):
            yield current, inner[0], inner[1] if len(inner) > 1 else None
            if len(inner) == 1:  # the error of a difference to zero
                queue.append((inner[0], True))
        elif kind in _TO_ERROR:
            squared = squared or product or kind in ("Pow", "Abs")
            queue += [(one, squared) for one in (inner[:1] if product else inner)]


def kind_of(node: Any) -> str:
    """Return the operation of a node: "Add" for ``AddBackward0``."""
    return str(node.name()).partition("Backward")[0]
