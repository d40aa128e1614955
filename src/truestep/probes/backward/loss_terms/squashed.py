"""Logarithms of a sigmoid, near a loss, of values that a sigmoid has made already: in any form, also by hand."""

from __future__ import annotations

from collections import deque
from typing import Any

from truestep.events import Site, SquashedTwice
from truestep.probes.backward.origin import RESHAPING, SELECTING
from truestep.probes.context.scene import Scene

_REDUCTIONS = ("MeanBackward", "SumBackward")
_TERMS = ("AddBackward0", "SubBackward0", "RsubBackward0", "RsubBackward1", "NegBackward0", "WhereBackward0")
_FACTORS = ("MulBackward0", "DivBackward0")
_EXP = "ExpBackward0"
_SIGMOID = "SigmoidBackward0"
_MOST_TERMS = 48
_MOST_BETWEEN = 8


def read_squashed(scene: Scene, root: Any, site: Site | None) -> None:
    """Emit an event if a term of a loss is the logarithm of a sigmoid of the result of a sigmoid."""
    queue = deque([] if root is None else [root])
    seen: set[Any] = set()
    while queue and len(seen) < _MOST_TERMS:
        node = queue.popleft()
        if node in seen:
            continue
        seen.add(node)
        name = str(node.name())
        form = _logarithm(node, name)
        if form is not None:
            if str(_before(form[0]).name()) == _SIGMOID:
                scene.tell(SquashedTwice, site=site, form=form[1])
                return
            continue
        inner = [following for following, _ in node.next_functions]
        if name in _FACTORS:  # not a denominator, nor one of two results: these may be a scale, or a gate
            inner = inner if None in inner and (name.startswith("Mul") or inner[0] is not None) else []
        elif not (name.startswith(_REDUCTIONS) or name in _TERMS or name in RESHAPING or name in SELECTING):
            continue
        queue.extend(following for following in inner if following is not None)


def _logarithm(node: Any, name: str) -> tuple[Any, str] | None:
    """Return the operation that made the argument of a log-sigmoid, and its form; None for another operation.

    Other logarithms of probabilities, such as ``softplus``, are costs and rates of gates as well.
    """
    inner = _only(node)
    if inner is None or name not in ("LogSigmoidBackward0", "Log1PBackward0"):
        return None
    if name == "LogSigmoidBackward0":
        return inner, "logsigmoid"
    for operation in (_EXP, "NegBackward0", "AbsBackward0"):  # log1p(exp(-x.abs())) of the stable cross entropy
        if inner is None or str(inner.name()) != operation:
            return None
        inner = _only(inner)
    return None if inner is None else (inner, "log of 1 + exp")


def _before(node: Any) -> Any:
    """Return the operation before changes of the sign and the shape, and selections."""
    for _ in range(_MOST_BETWEEN):
        name = str(node.name())
        if name not in ("NegBackward0", "AbsBackward0") and name not in RESHAPING and name not in SELECTING:
            return node
        inner = _only(node)
        if inner is None:
            return node
        node = inner
    return node


def _only(node: Any) -> Any:
    """Return the operation before one with a single input that has a gradient; None for others."""
    inner = [following for following, _ in node.next_functions if following is not None]
    return inner[0] if len(inner) == 1 else None
