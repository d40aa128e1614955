"""Whether targets lie where the operation before the loss cannot come: values of a sample, at the first few looks."""

from __future__ import annotations

import math
from typing import Any

_REACH = {
    "ReluBackward0": (0.0, math.inf),
    "SoftplusBackward0": (0.0, math.inf),
    "SigmoidBackward0": (0.0, 1.0),
    "SoftmaxBackward0": (0.0, 1.0),
    "TanhBackward0": (-1.0, 1.0),
}
_SAMPLE = 4096
_CLEARLY = 0.25
"""Beyond a bounded reach by so much of its width, or beyond a half-open one by half of what the targets vary."""


def beyond(made_by: str, target: Any) -> int | None:
    """Return the percentage of targets clearly beyond the range of the operation; None if its range is unlimited."""
    reach = _REACH.get(made_by)
    if reach is None or target.requires_grad or not target.is_floating_point() or target.numel() < 2:
        return None
    low, high = reach
    flat = target.detach().reshape(-1)
    some = flat[:: max(1, len(flat) // _SAMPLE)].double()
    margin = _CLEARLY * (high - low) if math.isfinite(high) else 0.5 * float(some.std(correction=0))
    if not math.isfinite(margin):
        return None
    return round(100 * float(((some < low - margin) | (some > high + margin)).double().mean()))
