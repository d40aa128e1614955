"""Find targets outside the range of the operation before the loss: a sample of their values, at the first few steps."""

from __future__ import annotations

import math
from typing import Any

_RANGES = {
    "ReluBackward0": (0.0, math.inf),
    "SoftplusBackward0": (0.0, math.inf),
    "SigmoidBackward0": (0.0, 1.0),
    "SoftmaxBackward0": (0.0, 1.0),
    "TanhBackward0": (-1.0, 1.0),
}
_SAMPLE = 4096
_MOST_COLUMNS = 64
_LEAST_ROWS = 32
_CLEARLY = 0.25
"""Distance that counts as outside, as a share of the width of a bounded range; for a half-open one it is half of the
standard deviation of the targets."""


def beyond(made_by: str, target: Any) -> int | None:
    """Return the percentage of targets clearly beyond the range of the operation; None if its range is unlimited.

    Of targets in a few columns, such as the sides of boxes, it is that of the column with the most of them.
    """
    limits = _RANGES.get(made_by)
    if limits is None or target.requires_grad or not target.is_floating_point() or target.numel() < 2:
        return None
    low, high = limits
    few = target.dim() == 2 and target.shape[1] <= _MOST_COLUMNS and len(target) >= _LEAST_ROWS
    rows = target.detach().reshape(-1, target.shape[1] if few else 1)
    some = rows[:: max(1, rows.numel() // _SAMPLE)].double()
    margin = _CLEARLY * (high - low) if math.isfinite(high) else 0.5 * some.std(0, correction=0)
    if not math.isfinite(float(some.sum())):
        return None
    return round(100 * float(((some < low - margin) | (some > high + margin)).double().mean(0).max()))
