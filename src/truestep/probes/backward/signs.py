"""Signs on the tape of a loss: of the loss function that it is a multiple of, and of terms that have a direction.

Terms with a direction are the size of weights, the entropy of a policy, and the lesser of two ratios of PPO.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.probes.backward.policies.entropies import minimised_entropy
from truestep.probes.context.values import has_values, saved

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
SCALINGS = ("DivBackward0", "MulBackward0")
"""Operations that scale a loss."""


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
            by = factor(node)
            if not by:
                return "", False
            negative ^= by < 0
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


def factor(node: Any) -> float:
    """Return the constant of a product or a quotient; 0 if it is unknown, or would have to be read from a device."""
    try:
        other = node._saved_other
    except RuntimeError:  # the graph was freed
        return 0.0
    if other is None or not other.is_cpu or other.numel() != 1 or other.requires_grad:
        return 0.0
    value = float(other)
    return value if value - value == 0.0 else 0.0


_SUMS = ("AddBackward0", "SubBackward0", "RsubBackward0")
_SIZES = ("PowBackward0", "AbsBackward0", "NormBackward", "LinalgVectorNormBackward0")
_TO_LEAVES = ("EmbeddingBackward0", "IndexBackward0", "IndexSelectBackward0", "CatBackward0", "torch::autograd")
_EXTREMES = {"MinimumBackward0": True, "MaximumBackward0": False}
_MOST_TERMS = 64
_FEW, _MANY = 8, 1 << 20
"""Least and largest number of divisors that are read."""
_LEAST_PART = 0.1
"""Least share of the divisors on each side of zero: a few values below it may be outliers."""


def turned_term(root: Any) -> str:
    """Return which term of a loss has the other sign than it is meant to have; an empty string if none.

    "weights": the size of weights is subtracted. "entropy": the entropy of a policy is added to its loss. "ratio": of
    a ratio of probabilities and the clipped one, the more favourable is taken. "quotient": errors are divided by values
    of both signs.
    """
    for node, sign in terms_of(root):
        if sign < 0 and _is_size_of_weights(node):
            return "weights"
        if _favours(node, sign):
            return "ratio"
        if _divides_errors(node):
            return "quotient"
    return "entropy" if minimised_entropy(root) else ""


def terms_of(root: Any) -> Iterator[tuple[Any, int]]:
    """Yield the operations that the terms of a sum were made by, and the sign of each, through means and factors.

    A product of two terms has no terms; each negation is also yielded itself.
    """
    queue = [(root, 1)]
    for _ in range(_MOST_TERMS):
        if not queue:
            return
        node, sign = queue.pop()
        name = str(node.name())
        inner = [following for following, _ in node.next_functions]
        if name in _SUMS and len(inner) == 2:
            first, second = (-1 if name == "RsubBackward0" else 1), (-1 if name == "SubBackward0" else 1)
            queue += [(one, sign * s) for one, s in zip(inner, (first, second), strict=True) if one is not None]
            continue
        yield node, sign
        known = [one for one in inner if one is not None]
        if len(known) != 1:
            continue
        if name == "NegBackward0":
            queue.append((known[0], -sign))
        elif name in _FACTORS:
            by = factor(node)
            if by:
                queue.append((known[0], sign if by > 0 else -sign))
        elif name.startswith(_THROUGH):
            queue.append((known[0], sign))


def _is_size_of_weights(node: Any) -> bool:
    """Return True for squares, absolute values or norms of weights, or of rows of them, with nothing in between."""
    name = str(node.name())
    inner = [following for following, _ in node.next_functions if following is not None]
    if name == "MulBackward0":
        if len(inner) != 2 or inner[0] is not inner[1]:
            return False
    elif not name.startswith(_SIZES) or len(inner) != 1 or (name == "PowBackward0" and node._saved_exponent != 2):
        return False
    queue = [inner[0]]
    for _ in range(_MOST_TERMS):
        if not queue:
            return True
        below = queue.pop()
        kind = str(below.name())
        if kind == "torch::autograd::AccumulateGrad":
            if below.variable.dim() < 2:
                return False
        elif not kind.startswith((*_TO_LEAVES, *_THROUGH)):
            return False
        queue += [following for following, _ in below.next_functions if following is not None]
    return False


def _favours(node: Any, sign: int) -> bool:
    """Return True if of a ratio of probabilities and the clipped one the loss takes that with less loss."""
    least = _EXTREMES.get(str(node.name()))
    if least is None or (sign > 0) != least:
        return False
    found = clipped_ratio(node)
    return found is not None and str(found.ratio.name()) == "ExpBackward0"


class ClippedRatio(NamedTuple):
    """Operations of a ratio of probabilities, of its clip, and of its product with weights."""

    clip: Any
    ratio: Any
    product: Any


def clipped_ratio(node: Any) -> ClippedRatio | None:
    """Return a ratio of probabilities if an operation takes an extreme of its product and that of the clipped one."""
    if str(node.name()) not in _EXTREMES:
        return None
    factors, products = [], []
    for following, _ in node.next_functions:
        name = "" if following is None else str(following.name())
        while name == "NegBackward0":
            following = following.next_functions[0][0]
            name = "" if following is None else str(following.name())
        if name != "MulBackward0":
            return None
        known = [_made(one) for one, _ in following.next_functions if one is not None]
        if len(known) != 1:
            return None
        factors.append(known[0])
        products.append(following)
    clips = [one for one in factors if str(one.name()).startswith("ClampBackward")]
    others = [one for one in factors if one not in clips]
    if len(clips) != 1 or len(others) != 1 or _made(clips[0].next_functions[0][0]) is not others[0]:
        return None
    return ClippedRatio(clips[0], others[0], products[factors.index(others[0])])


def _made(node: Any) -> Any:
    """Return the operation before negations and factors without a gradient."""
    while node is not None and str(node.name()) in ("NegBackward0", *_FACTORS):
        known = [following for following, _ in node.next_functions if following is not None]
        if len(known) != 1:
            return node
        node = known[0]
    return node


def _divides_errors(node: Any) -> bool:
    """Return True for errors of zero or more that are divided by one value each, of which many are below zero."""
    errors = node.next_functions[0][0] if node.name() == "DivBackward0" and node.next_functions else None
    if errors is None or not _is_of_errors(errors):
        return False
    divisors = saved(node, "other")
    if divisors is None or not _FEW <= divisors.numel() <= _MANY or not has_values(divisors):
        return False
    if tuple(divisors.shape) != tuple(errors._input_metadata[0].shape):
        return False
    below = int((divisors.detach() < 0).sum())
    return _LEAST_PART <= below / int(divisors.numel()) <= 1 - _LEAST_PART


def _is_of_errors(node: Any) -> bool:
    """Return True for absolute values, squares or errors of torch, of differences."""
    name = str(node.name())
    if name.startswith(_NOT_NEGATIVE):
        return True
    inner = [following for following, _ in node.next_functions if following is not None]
    if name == "MulBackward0":
        square = len(inner) == 2 and inner[0] is inner[1]
    else:
        square = name == "AbsBackward0" or (name == "PowBackward0" and node._saved_exponent == 2)
    return square and bool(inner) and str(inner[0].name()).startswith(("SubBackward", "RsubBackward"))


def source_of(node: Any) -> dict[str, Any]:
    """Return the facts of the operations that computed a loss, as `LossRead` has them."""
    function, negative = ("", False) if node is None else loss_function(node)
    turned = "" if node is None or function else turned_term(node)
    scaled = False
    while node is not None:
        name = str(node.name())
        inner = [following for following, _ in node.next_functions if following is not None]
        if name not in SCALINGS or len(inner) != 1:
            facts = {"function": function, "negative": negative, "turned": turned}
            return {"root": name, "scaled": scaled, **facts}
        node, scaled = inner[0], True
    return {"root": "leaf", "scaled": scaled}
