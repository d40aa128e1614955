"""Predictions of a program beside the plain reading of its scores: the largest ones, or the signs of single ones."""

from __future__ import annotations

from typing import Any

_LEAST = 8
_BOTH = 2
_RARER = 0.3
"""Least share of the rarer of two classes: with a rare one, all predictions can be alike."""
_ODD = 0.2
"""Least share of predictions outside of the classes."""
_SEVERAL = 5
"""Least number of different predictions, if some are outside of the classes: one stands for an abstention."""


def plainly_right(result: Any, predicted: Any, target: Any) -> int | None:
    """Return how many targets the plain reading of a result hits; None if the program can mean other predictions.

    Args:
        result: scores of shape (N, C), or single scores of shape (N,) or (N, 1).
        predicted: N predictions of the program.
        target: N classes.
    """
    rows = len(result) if result.dim() else 0
    if rows < _LEAST or predicted.numel() != rows or target.numel() != rows or result.dim() > _BOTH:
        return None
    known = target.reshape(-1).double()
    result, chosen = result.to(known.device), predicted.reshape(-1).to(known)  # predictions may have left the device
    classes = known.unique()
    if result.numel() == rows:
        return _of_single(result.reshape(-1), chosen, known, classes)
    scores = result.shape[1]
    if scores == _BOTH or bool((chosen < 0).any()) or float(max(classes.max(), chosen.max())) >= scores:
        return None
    return int((result.argmax(1) == known).sum())


def _of_single(scores: Any, chosen: Any, known: Any, classes: Any) -> int | None:
    if len(classes) != _BOTH:
        return None
    right = known == classes[1]
    share = float(right.double().mean())
    if min(share, 1 - share) < _RARER:
        return None
    made = chosen.unique()
    odd = float(((chosen != classes[0]) & (chosen != classes[1])).double().mean())
    if len(made) > 1 and not (odd >= _ODD and len(made) >= _SEVERAL):
        return None
    return max(int(((scores > limit) == right).sum()) for limit in (0, 0.5))
