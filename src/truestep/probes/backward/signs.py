"""The loss function that a backward pass starts from, through negations, constant factors and means: and its sign."""

from __future__ import annotations

from typing import Any

_THROUGH = (
    "MeanBackward",
    "SumBackward",
    "SqueezeBackward",
    "ViewBackward",
    "UnsafeViewBackward",
    "ReshapeAliasBackward",
)
_PICKING = ("IndexBackward0", "GatherBackward0")
"""Operations that pick the log-probability of each label, the negative of a cross entropy."""
_FACTORS = ("MulBackward0", "DivBackward0")
_NOT_NEGATIVE = (
    "MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropyWithLogits", "BinaryCrossEntropy",
)  # fmt: skip
"""Operations with a value of zero or more. `BinaryCrossEntropy` stands behind the longer name that begins like it."""
_DEEP = 8


def loss_function(node: Any) -> tuple[str, bool]:
    """Return the name of the loss function that a value is a multiple of, and True if the factor is negative.

    The terms of a sum must all be such multiples, with one sign; the name is that of the first. ("", False) for any
    other value, and for a loss that can be less than zero.
    """
    return _signed(node, _DEEP)


def _signed(node: Any, deep: int) -> tuple[str, bool]:
    negative = False
    for left in range(deep, 0, -1):
        name = str(node.name())
        if name.startswith("NllLoss"):
            first = node.next_functions[0][0]
            whole = first is not None and first.name() == "LogSoftmaxBackward0"
            return ("NllLoss", negative) if whole else ("", False)
        if name in _PICKING:
            first = node.next_functions[0][0]
            whole = first is not None and first.name() == "LogSoftmaxBackward0"
            return ("NllLoss", not negative) if whole else ("", False)
        if name in ("AbsBackward0", "PowBackward0"):
            return (_of_difference(node), negative) if _of_difference(node) else ("", False)
        known = next((one for one in _NOT_NEGATIVE if name.startswith(one)), "")
        if known:
            return known, negative
        if name == "AddBackward0":
            terms = [_signed(following, left - 1) for following, _ in node.next_functions if following is not None]
            alike = all(function and sign == terms[0][1] for function, sign in terms)
            return (terms[0][0], negative ^ terms[0][1]) if alike and terms else ("", False)
        if name == "NegBackward0":
            negative = not negative
        elif name in _FACTORS:
            factor = _factor(node)
            if not factor:
                return "", False
            negative ^= factor < 0
        elif not name.startswith(_THROUGH):
            return "", False
        inner = [following for following, _ in node.next_functions if following is not None]
        if len(inner) != 1:
            return "", False
        node = inner[0]
    return "", False


def _of_difference(node: Any) -> str:
    """Return the name of an error by hand: the absolute value, or the square, of a difference to a constant."""
    inner = node.next_functions[0][0]
    if inner is None or not inner.name().startswith(("SubBackward", "RsubBackward")):
        return ""
    if sum(following is not None for following, _ in inner.next_functions) != 1:
        return ""
    if node.name() == "AbsBackward0":
        return "L1Loss"
    return "MseLoss" if node._saved_exponent == 2 else ""


def _factor(node: Any) -> float:
    """Return the constant of a product or a quotient; 0 if it is unknown, or would have to be read from a device."""
    try:
        other = node._saved_other
    except RuntimeError:  # the graph was freed
        return 0.0
    if other is None or not other.is_cpu or other.numel() != 1 or other.requires_grad:
        return 0.0
    value = float(other)
    return value if value - value == 0.0 else 0.0
