"""Values that an activation has made already, near a loss: in the logarithm of a sigmoid, and in a Poisson loss."""

from __future__ import annotations

from collections import deque
from typing import Any

from truestep.events import RatesRead, Site, SquashedTwice
from truestep.probes.backward.origin import RESHAPING, SELECTING, made_by
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_REDUCTIONS = ("MeanBackward", "SumBackward")
_TERMS = ("AddBackward0", "SubBackward0", "RsubBackward0", "RsubBackward1", "NegBackward0", "WhereBackward0")
_FACTORS = ("MulBackward0", "DivBackward0")
_EXP = "ExpBackward0"
_SIGMOID = "SigmoidBackward0"
_MOST_TERMS = 48
_MOST_BETWEEN = 8
_TWO = 2
_MOST_COUNTS = 1 << 20
_LEAST_ZEROS = 0.05


def read_squashed(scene: Scene, root: Any, site: Site | None) -> None:
    """Emit an event if a term of a loss is the logarithm of a sigmoid of the result of a sigmoid, or a Poisson loss."""
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
        logarithm = _of_rates(node, name)
        if logarithm is not None:
            scene.tell(RatesRead, site=site, made_by=made_by(logarithm))
            return
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


def _of_rates(node: Any, name: str) -> Any:
    """Return the operation that made the logarithms of the rates of a Poisson loss, exp(x) - count * x; else None.

    Some counts are zero: counts of one and more have rates of one and more, which positive logarithms can reach.
    """
    if name != "SubBackward0" or len(node.next_functions) != _TWO:
        return None
    rates, products = (following for following, _ in node.next_functions)
    if rates is None or products is None or rates.name() != _EXP or products.name() != "MulBackward0":
        return None
    logarithm = _only(rates)
    if logarithm is None or logarithm is not _only(products):
        return None
    counts = saved(products, "other" if products.next_functions[0][0] is not None else "self")
    if counts is None or not has_values(counts) or not 0 < counts.numel() <= _MOST_COUNTS:
        return None
    return logarithm if float((counts.detach() < 1).float().mean()) >= _LEAST_ZEROS else None


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
