"""Effective batch size, and the lr for another batch size."""

from __future__ import annotations

import math
from typing import Literal

from truestep.errors import BadSettings


def effective_batch_size(batch_size: int, *, accumulate: int = 1, world_size: int = 1) -> int:
    """Return the number of samples that one update averages over: `batch_size * accumulate * world_size`.

    Args:
        batch_size: samples in a batch of one rank.
        accumulate: batches per update.
        world_size: number of ranks.

    Raises:
        BadSettings: one of them is not an integer of at least 1.

    Example:
        >>> effective_batch_size(64, accumulate=4, world_size=8)
        2048
    """
    for name, value in (("batch_size", batch_size), ("accumulate", accumulate), ("world_size", world_size)):
        _whole(name, value)
    return batch_size * accumulate * world_size


def scaled_lr(
    lr: float,
    *,
    base_batch_size: int,
    batch_size: int,
    accumulate: int = 1,
    world_size: int = 1,
    rule: Literal["linear", "sqrt"] = "linear",
) -> float:
    """Return the lr for a batch size, scaled from an lr that works with another batch size.

    Args:
        lr: the lr that works with `base_batch_size`.
        base_batch_size: samples per update of that training, all ranks together.
        batch_size: samples in a batch of one rank of this training.
        accumulate: batches per update.
        world_size: number of ranks.
        rule: "linear" multiplies by the ratio of the batch sizes (SGD with momentum, together with a warm-up), "sqrt"
            by its square root (Adam and other optimizers that divide by the size of gradients).

    Raises:
        BadSettings: an unknown rule, an lr that is not above 0, or a size that is not an integer of at least 1.

    Sources: Goyal et al. (arXiv:1706.02677) for "linear"; Krizhevsky (arXiv:1404.5997), section 5, and Hoffer et al.
    (arXiv:1705.08741), section 4, for "sqrt"; Malladi et al. (arXiv:2205.10287) for "sqrt" with Adam.

    Example:
        >>> scaled_lr(0.1, base_batch_size=256, batch_size=64, accumulate=4, world_size=8)
        0.8
        >>> scaled_lr(1e-3, base_batch_size=256, batch_size=1024, rule="sqrt")
        0.002
    """
    if isinstance(lr, bool) or not isinstance(lr, int | float) or not 0 < lr < math.inf:
        raise BadSettings(
            f"lr must be a number above 0, got {lr!r}", remedy="pass the lr that works with base_batch_size"
        )
    if rule not in ("linear", "sqrt"):
        raise BadSettings(
            f'rule must be "linear" or "sqrt", got {rule!r}',
            remedy='pass rule="linear" for SGD, rule="sqrt" for Adam',
        )
    _whole("base_batch_size", base_batch_size)
    ratio = effective_batch_size(batch_size, accumulate=accumulate, world_size=world_size) / base_batch_size
    return lr * (ratio if rule == "linear" else math.sqrt(ratio))


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadSettings(f"{name} must be an integer of at least 1, got {value!r}", remedy=f"pass {name}=1 or more")
