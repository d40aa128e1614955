"""Signs that positions were not chosen by a mask: by the values of the scores, or by chance, as by a dropout."""

from __future__ import annotations

from typing import Any

_NEAR = 0.1
"""Part of the extent of the scores within which the ones next to a limit lie."""
_LEAST_NEXT = 10
_LEAST_BESIDE = 3
_LEAST_POSITIONS = 64
_PAIR = 2
_DEVIATIONS = 5.0
_EQUAL = 1e-3
_RESOLUTION = 1e-5
_LEAST_SHARE = 1e-30


def is_by_value(shares: Any, masked: Any, rows: Any, along: int, *, zero: bool) -> bool:
    """Return True if the masked scores are a limit of the others, a band of values next to one, or no constant.

    Args:
        shares: weights of a softmax.
        masked: its masked positions.
        rows: rows with both kinds of positions.
        along: dimension of the softmax.
        zero: whether masked scores are zero, as after a product.
    """
    largest = shares.masked_fill(~masked, 0.0).amax(along)
    least = shares.masked_fill(masked, 1.0).amin(along)
    if bool((least >= largest)[rows].all()):
        return True  # a limit from below, as of a ReLU, leaves larger scores alone
    lowest = shares.masked_fill(~masked, 1.0).amin(along)
    if bool((lowest < largest * (1 - _EQUAL))[rows].any()):
        return True  # scores that replace others, such as their copies without a gradient
    apart = shares.clamp(min=_LEAST_SHARE).log() - largest.clamp(min=_LEAST_SHARE).log().unsqueeze(along)
    apart = apart[~masked & rows.unsqueeze(along) & (shares > _LEAST_SHARE)]
    if not apart.numel():
        return False
    # Equal tokens have equal scores, and tiny ones are equal up to rounding errors.
    each = (apart / _RESOLUTION).round().unique() * _RESOLUTION
    beside = each[each.abs() < 2 * each.abs().amin()]
    above, below = int((beside > 0).sum()), int((beside < 0).sum())
    if above + below >= _LEAST_NEXT:
        # None lies next to the masked ones, and many a little further off on both sides: small ones were set to zero.
        return min(above, below) >= _LEAST_BESIDE
    highest = float(apart.amax())
    # A limit from above has scores close to it.
    return not zero and -_NEAR * (highest - float(apart.amin())) <= highest <= 0


def is_at_random(mask: Any) -> bool:
    """Return True if the positions of a mask look independent of each other, as those of a dropout.

    Neighbours, and positions opposite to each other, are then equal about as often as by chance. Those of padding,
    of later positions and of the edges of most graphs are equal more often.
    """
    mask = mask.squeeze()
    total = mask.numel()
    if total < _LEAST_POSITIONS:
        return False
    share = float(mask.float().mean())
    equal = share * share + (1 - share) * (1 - share)
    bound = _DEVIATIONS * (equal * (1 - equal)) ** 0.5
    for at, size in enumerate(mask.shape):
        same = mask.narrow(at, 1, size - 1) == mask.narrow(at, 0, size - 1)
        if abs(float(same.float().mean()) - equal) > bound / same.numel() ** 0.5:
            return False
    if mask.dim() < _PAIR or mask.shape[-1] != mask.shape[-2]:
        return True
    diagonal = mask.diagonal(dim1=-2, dim2=-1).float()
    if abs(float(diagonal.mean()) - share) > _DEVIATIONS * (share * (1 - share) / diagonal.numel()) ** 0.5:
        return False
    one, other = (mask.triu(1), mask.transpose(-1, -2).triu(1))
    pairs = (total - diagonal.numel()) / 2
    return bool(abs(1 - float((one != other).sum()) / pairs - equal) <= bound / pairs**0.5)


def fingerprint(mask: Any) -> tuple[int, ...]:
    """Return numbers that are the same for equal masks, and others for almost all others."""
    places = mask.reshape(-1).nonzero().reshape(-1)
    return (*mask.shape, places.numel(), int(places.sum()), int((places * places % 10_007).sum()))
