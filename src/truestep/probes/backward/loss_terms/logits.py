"""Results of models that a loss takes for logits, in any form: it squashes them wherever it reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from truestep.events import LogitsRead, Site
from truestep.probes.backward.origin import RESHAPING, SELECTING
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import Node, key_of

_MOST_NODES = 2_000
_MOST_READS = 8
"""Passes in which the results of a model are followed."""
_LOGISTIC = ("SigmoidBackward0", "LogSigmoidBackward0", "BinaryCrossEntropyWithLogitsBackward0")
_SOFTPLUS = "SoftplusBackward0"
_STABLE = ("ExpBackward0", "Log1PBackward0")
"""``log1p(exp(-z.abs()))``, from the result on."""
_PARTNERS = ("MulBackward0", "ClampBackward0", "ClampBackward1", "ClampMinBackward0", "ReluBackward0")
"""Other operations on logits in their cross entropy by hand: ``z.clamp(min=0) - y * z + ...``."""

_Use = tuple[str, str]
"""The first operation on a result, and the next one; changes of sign, of shape and selections do not count."""


class Logits:
    """Emits `LogitsRead`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._reads: dict[int, int] = {}
        """Model to the number of passes in which its results were followed."""

    def look(self, root: Any, results: Iterable[tuple[int, Iterable[Node]]], site: Site | None) -> None:
        """Handle a backward pass at a sampled step.

        Args:
            root: the operation that made the loss.
            results: models that were called in this step, each with the last operations of its results.
            site: line of the pass.
        """
        models: dict[Node, int] = {}
        for model, nodes in results:
            if self._reads.get(model, 0) < _MOST_READS:
                models |= dict.fromkeys(nodes, model)
        found = _uses(root, models) if models and root is not None else {}
        for model, uses in found.items():
            self._reads[model] = self._reads.get(model, 0) + 1
            self._scene.emit(LogitsRead(model=model, squashed=_are_logits(uses), site=site))


def _uses(root: Any, models: dict[Node, int]) -> dict[int, set[_Use]]:
    """Return the uses of the results of models in a graph; none if the graph is too large."""
    found: dict[int, set[_Use]] = {}
    queue: deque[tuple[Any, _Use]] = deque([(root, ("", ""))])
    seen: set[tuple[Node, _Use]] = set()
    while queue:
        node, use = queue.popleft()
        key = key_of(node)
        if (key, use) in seen:
            continue
        if len(seen) >= _MOST_NODES:
            return {}
        seen.add((key, use))
        if key in models:
            found.setdefault(models[key], set()).add(use)
            continue
        name = str(node.name())
        if name not in RESHAPING and name not in SELECTING and name not in ("NegBackward0", "AbsBackward0"):
            use = _named(node, name), use[0]
        queue.extend((following, use) for following, _ in node.next_functions if following is not None)
    return found


def _named(node: Any, name: str) -> str:
    """Return the name of an operation; that of a product or a quotient of two results is marked."""
    if name not in ("MulBackward0", "DivBackward0"):
        return name
    return name if sum(following is not None for following, _ in node.next_functions) == 1 else f"{name} of two"


def _are_logits(uses: set[_Use]) -> bool:
    """Return True if a loss squashes a result wherever it reads it, or is the cross entropy of logits by hand."""
    plain = {use for use in uses if use[0] not in _LOGISTIC}
    if not plain:
        return True
    by_hand = any(use == _STABLE or use[0] == _SOFTPLUS for use in plain)
    return by_hand and all(use == _STABLE or use[0] in (_SOFTPLUS, *_PARTNERS) for use in plain)
