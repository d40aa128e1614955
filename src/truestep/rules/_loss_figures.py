"""Perplexities and bits per token, by the losses in nats that they are computed from."""

from __future__ import annotations

import math
from collections.abc import Iterator

from truestep.events import LossFigureRead

HELP = {
    "perplexity": "compute `math.exp(loss)` of the mean loss in nats",
    "bits": "divide the mean loss in nats by `math.log(2)`",
}
"""Remedy of each figure."""
_EXACT = 3e-6
"""Relative difference up to which two means are equal; float32 has seven digits."""
_NEAR = 0.02
"""Relative difference up to which a figure may be right: a mean of perplexities, or another mean of its losses."""


def mistaken(event: LossFigureRead) -> str:
    """Return the mistake of a perplexity, or of bits; "" for a right figure, and for an unknown one.

    >>> mistaken(LossFigureRead(claim="perplexity", name="ppl", values=(2**2.5,), losses=((2.5, 10.0, 4),)))
    'a power of 2, and its loss is in nats'
    >>> mistaken(LossFigureRead(claim="perplexity", name="ppl", values=(math.exp(2.5),), losses=((2.5, 10.0, 4),)))
    ''
    """
    value = event.values[-1]
    if not math.isfinite(value) or value <= 0 or not event.losses:
        return ""
    right = (_power(mean) if event.claim == "perplexity" else mean / math.log(2) for mean, _, _ in event.losses)
    if any(abs(value - one) <= _NEAR * one for one in right):
        return ""
    for loss in event.losses:
        for wrong, name in _perplexities(*loss) if event.claim == "perplexity" else _bits(loss[0]):
            if 0 < wrong < math.inf and abs(value - wrong) <= _EXACT * max(1.0, abs(math.log(wrong))) * wrong:
                return name
    return ""


def _perplexities(mean: float, total: float, count: int) -> Iterator[tuple[float, str]]:
    yield _power(mean, 2), "a power of 2, and its loss is in nats"
    yield _power(mean, 10), "a power of 10, and its loss is in nats"
    yield _power(mean / math.log(2)), "the exponential of a loss in bits"
    if count > 1:
        yield _power(total), "the exponential of the sum of the losses, not of their mean"
        yield _power(total / count), "the exponential of the sum of the losses, divided by the number of batches"
        yield _power(mean / count), "the exponential of a mean loss that is divided by the number of batches again"


def _bits(mean: float) -> Iterator[tuple[float, str]]:
    yield mean, "a loss in nats"
    yield mean * math.log(2), "a loss in nats that is multiplied by ln 2"


def _power(exponent: float, base: float = math.e) -> float:
    """Return a power; infinity if it is too large."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
