"""A learning rate that rises in a line and falls in half a cosine."""

import math


def warmup_cosine(step, peak, warmup_steps, total_steps, end=0.0):
    """Return the learning rate of a step.

        warm-up:  peak * (step + 1) / warmup_steps
        after it: end + (peak - end) * (1 + cos(pi * progress)) / 2        progress: 0 at its beginning, 1 at the end

    Set it before each step of the optimizer, not once per epoch.

    Args:
        step: steps taken so far; the first step has number 0.
        peak: the largest learning rate.
        warmup_steps: steps of the rise, 0 for none.
        total_steps: steps of the whole training.
        end: the learning rate that the cosine falls to.

    Source: Goyal et al., Accurate, large minibatch SGD (arXiv:1706.02677), 2.2, for the warm-up; Loshchilov and Hutter,
    SGDR (arXiv:1608.03983), equation 5, for the cosine.

    >>> [round(warmup_cosine(step, 1.0, 2, 6), 3) for step in range(6)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
    return end + (peak - end) * (1 + math.cos(math.pi * progress)) / 2
