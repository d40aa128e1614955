"""What one update averages over, and the lr that goes with another batch size."""

from __future__ import annotations

import math
from typing import Literal

from truestep.errors import BadSettings


def effective_batch_size(batch_size: int, *, accumulate: int = 1, world_size: int = 1) -> int:
    """Return how many samples one update averages over: `batch_size * accumulate * world_size`.

    Args:
        batch_size: samples in a batch of one rank.
        accumulate: batches in the window of one update.
        world_size: how many ranks there are.

    Raises:
        BadSettings: one of them is no whole number of at least 1.

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
    """Return the lr for a batch size, from one that is known to work with another.

    Args:
        lr: the lr that works with `base_batch_size`.
        base_batch_size: samples that one update of that training averaged over, all ranks together.
        batch_size: samples in a batch of one rank of this training.
        accumulate: batches in the window of one update.
        world_size: how many ranks there are.
        rule: "linear" multiplies by the ratio of the batch sizes (SGD with momentum, together with a warm-up), "sqrt"
            by its square root (Adam and other optimizers that divide by the size of gradients).

    Raises:
        BadSettings: another rule, an lr that is not above 0, or a size that is no whole number of at least 1.

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
            f"lr is {lr!r}", expected="a number above 0", remedy="pass the lr that works with base_batch_size"
        )
    if rule not in ("linear", "sqrt"):
        raise BadSettings(
            f'"{rule}" is not a rule to scale an lr by',
            expected='expected "linear" or "sqrt"',
            remedy='pass rule="linear" for SGD, rule="sqrt" for Adam',
        )
    _whole("base_batch_size", base_batch_size)
    ratio = effective_batch_size(batch_size, accumulate=accumulate, world_size=world_size) / base_batch_size
    return lr * (ratio if rule == "linear" else math.sqrt(ratio))


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadSettings(
            f"{name} is {value!r}", expected="a whole number of at least 1", remedy=f"pass {name}=1 or more"
        )
