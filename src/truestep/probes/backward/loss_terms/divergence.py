"""The KL divergence of a variational autoencoder on the tape, and its weight beside the reconstruction.

The divergence of normal distributions from the standard normal one is known by its terms, squared means and variances
minus their logarithms, with equal factors. Sums, means and numbers on the way to the loss give its weight.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.events import DivergenceRead, Site
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import saved

_RECONSTRUCTIONS = {
    "MseLossBackward0", "L1LossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0", "BinaryCrossEntropyBackward0",
    "BinaryCrossEntropyWithLogitsBackward0",
}  # fmt: skip
_MEAN, _SUM = 1, 2
"""Reductions, as a loss saves them."""
_WHOLE = ("SumBackward0", "MeanBackward0")
_PARTS = ("SumBackward1", "MeanBackward1")
_MOST = 64
_EQUAL = 1e-4
Operation = tuple[Any, int]
"""An operation, and the index of its output."""


class _Term(NamedTuple):
    """A part of a sum, with the number that it is multiplied by."""

    factor: float
    of: Operation


def read_divergence(scene: Scene, root: Any, site: Site | None) -> None:
    """Emit an event for a loss that is a reconstruction error plus such a divergence."""
    if root is None or root.name() not in ("AddBackward0", "SubBackward0", "MulBackward0", "DivBackward0"):
        return
    terms = [_reduced(term) for term in _sum((root, 0), ())]
    parts = [found for factor, of in terms if (found := _divergence(factor, of)) is not None]
    errors = [error for factor, of in terms if (error := _error(factor, of)) is not None]
    if len(parts) != 1 or len(errors) != 1:
        return
    (weight, means, variances), (scale, values) = parts[0], errors[0]
    rows = int(means.shape[0]) if means.dim() > 1 else 0
    if rows and scale > 0 and weight > 0 and values % rows == 0:
        with scene.torch.no_grad():
            nats = 0.5 * float((means.double() ** 2 + variances.double() - 1 - variances.double().log()).sum()) / rows
        if math.isfinite(nats):
            scene.emit(DivergenceRead(site=site, weight=weight / scale, nats=nats, values=values // rows))


def _sum(of: Operation, shape: tuple[int, ...], factor: float = 1.0) -> Iterator[_Term]:
    """Yield the parts of a sum of tensors of one shape, through factors that are numbers."""
    queue, seen = deque([_Term(factor, of)]), 0
    while queue and seen < _MOST:
        term, seen = queue.popleft(), seen + 1
        node, name = term.of[0], term.of[0].name()
        inner = [(following, index) for following, index in node.next_functions if following is not None]
        if any(shape_of(*one) != shape for one in inner) or not inner:
            yield term
        elif name in ("AddBackward0", "SubBackward0", "RsubBackward0", "RsubBackward1"):
            alpha = float(getattr(node, "_saved_alpha", 1))
            signs = {"A": (1.0, alpha), "S": (1.0, -alpha), "R": (-alpha, 1.0)}[name[0]]
            both = zip(node.next_functions, signs, strict=False)
            queue.extend(_Term(term.factor * sign, one) for one, sign in both if one[0] is not None)
        elif name == "NegBackward0":
            queue.append(_Term(-term.factor, inner[0]))
        elif name in ("MulBackward0", "DivBackward0") and len(inner) == 1 and (number := _number(node)):
            queue.append(_Term(term.factor * number if name[0] == "M" else term.factor / number, inner[0]))
        else:
            yield term


def _number(node: Any) -> float:
    """Return the number that an operation multiplies by, or divides by; 0 if it is a tensor, or unknown."""
    first = node.next_functions[0][0] is not None
    other = saved(node, "other" if first or node.name() == "DivBackward0" else "self")
    return float(other) if other is not None and first and other.numel() == 1 and other.is_cpu else 0.0


def _reduced(term: _Term) -> _Term:
    """Follow a number through sums and means to the tensor that they reduce."""
    factor, (node, index) = term
    for _ in range(_MOST):
        name = node.name()
        inner = node.next_functions[0] if node.next_functions else (None, 0)
        if inner[0] is None or name not in (*_WHOLE, *_PARTS):
            parts = list(_sum((node, index), shape_of(node, index)))
            if len(parts) != 1 or parts[0].of[0] is node:
                break
            factor, (node, index) = factor * parts[0].factor, parts[0].of
            continue
        if name.startswith("Mean"):
            factor *= math.prod(shape_of(node, index)) / max(1, math.prod(shape_of(*inner)))
        node, index = inner
    return _Term(factor, (node, index))


def _divergence(factor: float, of: Operation) -> tuple[float, Any, Any] | None:
    """Return the weight of the divergence of each sample, and the means and variances of the distributions."""
    shape = shape_of(*of)
    terms = list(_sum(of, shape, factor)) if shape else []
    squares = [term for term in terms if _square(term.of[0])]
    exponents = [term for term in terms if term.of[0].name() == "ExpBackward0"]
    logarithms = [term for term in terms if term.of[0].name() == "LogBackward0"]
    if len(exponents) == 1 and len(squares) == 1:
        variance, inner = exponents[0], exponents[0].of[0].next_functions[0]
        times, source = next(_sum(inner, shape))
        rest = sum(term.factor for term in terms if term.of == source)
        values = saved(variance.of[0], "result")
    elif len(logarithms) == 1 and len(squares) == 2:
        inner = logarithms[0].of[0].next_functions[0]
        wide = [term for term in squares if inner in (term.of, term.of[0].next_functions[0])]
        if len(wide) != 1:
            return None
        variance, times = wide[0], 1.0 if inner == wide[0].of else 2.0
        rest, squares = logarithms[0].factor, [term for term in squares if term is not variance]
        spread = saved(variance.of[0], "self")
        values = None if spread is None else spread**2
    else:
        return None
    mean = squares[0]
    means = saved(mean.of[0], "self")
    equal = abs(variance.factor - mean.factor) <= _EQUAL * abs(mean.factor)
    if not equal or abs(rest + times * mean.factor) > _EQUAL * abs(mean.factor) or means is None or values is None:
        return None
    return (2 * mean.factor, means.detach(), values.detach()) if means.shape == values.shape else None


def _square(node: Any) -> bool:
    """Return True for the square of a tensor, also as a product with itself."""
    if node.name() == "PowBackward0":
        return float(getattr(node, "_saved_exponent", 0)) == 2.0
    return node.name() == "MulBackward0" and len(node.next_functions) == 2 and len(set(node.next_functions)) == 1


def _error(factor: float, of: Operation) -> tuple[float, int] | None:
    """Return the weight of each value of an error of reconstruction, and the number of values; None for others."""
    node, index = of
    inner = node.next_functions[0] if node.next_functions else (None, 0)
    if inner[0] is None:
        return None
    values = math.prod(shape_of(*inner))
    if node.name() in _RECONSTRUCTIONS:
        mean = getattr(node, "_saved_reduction", _SUM) == _MEAN
        return (factor / values if mean else factor), values
    difference = inner[0].name() in ("SubBackward0", "RsubBackward0", "RsubBackward1")
    return (factor, values) if difference and _square(node) and len(shape_of(node, index)) > 1 else None
