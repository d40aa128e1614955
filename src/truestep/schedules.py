"""Learning rate schedules with a warm-up, as plain `LambdaLR` objects.

    scheduler = truestep.schedules.warmup_cosine(optimizer, warmup=0.05, total_steps=epochs * len(loader))

Inside a run, leave `total_steps` out: the run knows its length and sets it when its loop starts. The factor of the
first step is 1 / (warmup_steps + 1). The minimum is reached at `total_steps`, one step after the last one, so no step
has an lr of 0. This is the convention of nanoGPT and torchtitan; schedules of Transformers begin with one step at 0.
After `total_steps` the lr stays at the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from truestep.errors import BadSchedule, UnboundSchedule

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LambdaLR

__all__ = ["constant", "inverse_sqrt", "warmup_cosine", "warmup_linear", "wsd"]

Shape = Literal["linear", "cosine", "sqrt"]

_FALLS: dict[str, Callable[[float], float]] = {
    "linear": lambda progress: 1.0 - progress,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
    "sqrt": lambda progress: 1.0 - math.sqrt(progress),
}


@dataclass(slots=True)
class Horizon:
    """Length of the training, for one schedule.

    Attributes:
        name: the function that made the schedule.
        warmup: a fraction of `total_steps` in [0, 1), or a number of steps.
        ends: True if the schedule has an end, so that its length must be known.
        total_steps: number of `step()` calls in the whole training; None while unknown.
        given: True if the caller passed `total_steps`.
        arguments: arguments of the function, to detect a schedule that was changed between two starts.
    """

    name: str
    warmup: float
    ends: bool
    total_steps: int | None
    given: bool
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def needs_total(self) -> bool:
        """Return True if the schedule cannot be stepped until its length is known."""
        return self.total_steps is None and (self.ends or isinstance(self.warmup, float))

    @property
    def warmup_steps(self) -> int:
        """Return the number of warm-up steps; needs the length if `warmup` is a fraction."""
        return _steps(self.warmup, self.total_steps or 0)


def horizon_of(scheduler: object) -> Horizon | None:
    """Return the `Horizon` of a schedule made by this module; None for any other scheduler."""
    factors = getattr(scheduler, "lr_lambdas", None) or [None]
    horizon = getattr(factors[0], "horizon", None)
    return horizon if isinstance(horizon, Horizon) else None


def warmup_cosine(
    optimizer: Optimizer, warmup: float = 0.05, *, min_lr_ratio: float = 0.0, total_steps: int | None = None
) -> LambdaLR:
    """Raise the lr linearly, then lower it along half a cosine.

    Args:
        optimizer: the lr of each parameter group is the peak of that group.
        warmup: a float in [0, 1) is a fraction of `total_steps`, rounded to whole steps; an int is a number of steps.
        min_lr_ratio: the lr from `total_steps` on, as a fraction of the peak, in [0, 1].
        total_steps: number of `step()` calls; may be left out inside a run.

    Raises:
        BadSchedule: an argument is out of range.
        UnboundSchedule: by `scheduler.step()`, if the length is not known by then.

    Source: Loshchilov and Hutter, SGDR (arXiv:1608.03983), one period; warm-up as in nanoGPT.

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = warmup_cosine(optimizer, warmup=2, total_steps=6)
    >>> [round(scheduler.lr_lambdas[0](step), 3) for step in range(7)]
    [0.333, 0.667, 1.0, 0.854, 0.5, 0.146, 0.0]
    """
    return _decaying("warmup_cosine", optimizer, warmup, "cosine", min_lr_ratio, total_steps)


def warmup_linear(
    optimizer: Optimizer, warmup: float = 0.05, *, min_lr_ratio: float = 0.0, total_steps: int | None = None
) -> LambdaLR:
    """Raise the lr linearly, then lower it linearly.

    Args and errors are those of `warmup_cosine`.

    Source: Devlin et al., BERT (arXiv:1810.04805), appendix A.2.

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = warmup_linear(optimizer, warmup=0, total_steps=4)
    >>> [round(scheduler.lr_lambdas[0](step), 3) for step in range(5)]
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    return _decaying("warmup_linear", optimizer, warmup, "linear", min_lr_ratio, total_steps)


def wsd(
    optimizer: Optimizer,
    warmup: float = 0.05,
    *,
    decay: float = 0.2,
    shape: Shape = "sqrt",
    min_lr_ratio: float = 0.0,
    total_steps: int | None = None,
) -> LambdaLR:
    """Raise the lr linearly, keep it constant, and lower it at the end (warm-up, stable, decay).

    Args:
        optimizer: the lr of each parameter group is the peak of that group.
        warmup: a float in [0, 1) is a fraction of `total_steps`, rounded to whole steps; an int is a number of steps.
        decay: a float in [0, 1] is a fraction of `total_steps`, an int a number of steps; never shortens the warm-up.
        shape: factor at progress p of the decay: "linear" 1 - p, "cosine" half a cosine, "sqrt" 1 - sqrt(p).
        min_lr_ratio: the lr from `total_steps` on, as a fraction of the peak, in [0, 1].
        total_steps: number of `step()` calls; may be left out inside a run.

    Raises:
        BadSchedule: an argument is out of range.
        UnboundSchedule: by `scheduler.step()`, if the length is not known by then.

    Source: Hu et al., MiniCPM (arXiv:2404.06395); shape and length of the decay: Hägele et al. (arXiv:2405.18392).

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = wsd(optimizer, warmup=1, decay=4, total_steps=8)
    >>> [round(scheduler.lr_lambdas[0](step), 3) for step in range(9)]
    [0.5, 1.0, 1.0, 1.0, 1.0, 0.5, 0.293, 0.134, 0.0]
    """
    if shape not in _FALLS:
        raise BadSchedule(
            f'shape must be "linear", "cosine" or "sqrt", got {shape!r}',
            remedy='pass shape="sqrt"',
        )
    if isinstance(decay, bool) or decay < 0 or (isinstance(decay, float) and decay > 1):
        raise BadSchedule(
            f"decay must be a fraction of the training or a number of steps, got {decay!r}",
            expected="expected a float in [0, 1] or an int of at least 0",
            remedy="pass decay=0.2 for the last fifth of the training",
        )
    return _decaying("wsd", optimizer, warmup, shape, min_lr_ratio, total_steps, decay)


def inverse_sqrt(
    optimizer: Optimizer, warmup: float = 0.05, *, timescale: int | None = None, total_steps: int | None = None
) -> LambdaLR:
    """Raise the lr linearly, then lower it with the inverse square root of the step. The schedule has no end.

    Args:
        optimizer: the lr of each parameter group is the peak of that group.
        warmup: a float in [0, 1) is a fraction of `total_steps`; an int is a number of steps and needs no length.
        timescale: number of steps after the warm-up in which the lr falls to 1 / sqrt(2) of the peak; default:
            warm-up steps plus 1.
        total_steps: number of `step()` calls; may be left out inside a run, or if `warmup` is an int.

    Raises:
        BadSchedule: an argument is out of range.
        UnboundSchedule: by `scheduler.step()`, if `warmup` is a fraction and the length is not known by then.

    Source: Vaswani et al. (arXiv:1706.03762), section 5.3; they count steps from 1, this function from 0.

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = inverse_sqrt(optimizer, warmup=1)
    >>> [round(scheduler.lr_lambdas[0](step), 3) for step in range(8)]
    [0.5, 1.0, 0.816, 0.707, 0.632, 0.577, 0.535, 0.5]
    """
    if timescale is not None and (isinstance(timescale, bool) or timescale < 1):
        raise BadSchedule(
            f"timescale must be a number of steps, at least 1, got {timescale!r}",
            remedy="leave timescale= out to use the length of the warm-up",
        )

    def after(step: int, warmup_steps: int, total_steps: int) -> float:
        scale = timescale or warmup_steps + 1
        return math.sqrt(scale / (scale + step - warmup_steps))

    arguments: dict[str, object] = {"timescale": timescale}
    return _schedule("inverse_sqrt", optimizer, warmup, total_steps, after, ends=False, arguments=arguments)


def constant(optimizer: Optimizer, warmup: float = 0.05, *, total_steps: int | None = None) -> LambdaLR:
    """Raise the lr linearly, then keep it constant. The schedule has no end.

    Args:
        optimizer: the lr of each parameter group is the lr after the warm-up.
        warmup: a float in [0, 1) is a fraction of `total_steps`; an int is a number of steps and needs no length.
        total_steps: number of `step()` calls; may be left out inside a run, or if `warmup` is an int.

    Raises:
        BadSchedule: an argument is out of range.
        UnboundSchedule: by `scheduler.step()`, if `warmup` is a fraction and the length is not known by then.

    Source: Goyal et al. (arXiv:1706.02677), section 2.2, for the warm-up.

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = constant(optimizer, warmup=3)
    >>> [round(scheduler.lr_lambdas[0](step), 3) for step in range(5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """
    return _schedule("constant", optimizer, warmup, total_steps, lambda step, warmup_steps, total: 1.0, ends=False)


def _decaying(
    name: str,
    optimizer: Optimizer,
    warmup: float,
    shape: Shape,
    min_lr_ratio: float,
    total_steps: int | None,
    decay: float | None = None,
) -> LambdaLR:
    """Make a schedule that falls to `min_lr_ratio` at its end; without `decay` it falls from the warm-up on."""
    if isinstance(min_lr_ratio, bool) or not 0 <= min_lr_ratio <= 1:
        raise BadSchedule(
            f"min_lr_ratio must be a fraction of the peak lr, in [0, 1], got {min_lr_ratio!r}",
            remedy="pass min_lr_ratio=0.1 to end at a tenth of the peak lr",
        )
    fall = _FALLS[shape]

    def after(step: int, warmup_steps: int, total_steps: int) -> float:
        start = warmup_steps
        if decay is not None:
            start = max(warmup_steps, total_steps - _steps(decay, total_steps))
        if step >= total_steps:
            return min_lr_ratio
        if step < start:
            return 1.0
        return min_lr_ratio + (1.0 - min_lr_ratio) * fall((step - start) / (total_steps - start))

    arguments: dict[str, object] = {"min_lr_ratio": min_lr_ratio}
    if decay is not None:
        arguments |= {"decay": decay, "shape": shape}
    return _schedule(name, optimizer, warmup, total_steps, after, ends=True, arguments=arguments)


def _schedule(
    name: str,
    optimizer: Optimizer,
    warmup: float,
    total_steps: int | None,
    after: Callable[[int, int, int], float],
    *,
    ends: bool,
    arguments: dict[str, object] | None = None,
) -> LambdaLR:
    """Make the `LambdaLR`: the warm-up, then `after(step, warmup_steps, total_steps)`."""
    from torch.optim.lr_scheduler import LambdaLR

    if isinstance(warmup, bool) or warmup < 0 or (isinstance(warmup, float) and warmup >= 1):
        raise BadSchedule(
            f"warmup must be a fraction of the training or a number of steps, got {warmup!r}",
            expected="expected a float in [0, 1) or an int of at least 0",
            remedy="pass warmup=0.05 for the first twentieth, or warmup=100 for 100 steps",
        )
    if total_steps is not None and (isinstance(total_steps, bool) or total_steps < 1):
        raise BadSchedule(
            f"total_steps must be a number of steps, at least 1, got {total_steps!r}",
            remedy="pass total_steps=epochs * len(loader), or leave it out inside a run",
        )
    given = {"warmup": warmup, "total_steps": total_steps, **(arguments or {})}
    horizon = Horizon(name, warmup, ends, total_steps, given=total_steps is not None, arguments=given)

    def factor(step: int) -> float:
        if horizon.needs_total:
            if step == 0:
                return 1.0  # the scheduler is being built: nothing is stepped with this lr before a run binds it
            raise UnboundSchedule(
                f"{name} was stepped before the length of the training was known",
                expected="expected total_steps=, or a run that sets it when its loop starts",
                remedy="pass total_steps=epochs * len(loader), the number of calls of step()",
            )
        warmup_steps = horizon.warmup_steps
        if step < warmup_steps and not (ends and step >= (horizon.total_steps or 0)):
            return (step + 1) / (warmup_steps + 1)
        return after(step, warmup_steps, horizon.total_steps or 0)

    vars(factor)["horizon"] = horizon  # a function's attribute is in no state_dict, a callable object's are
    return LambdaLR(optimizer, factor)


def _steps(part: float, total_steps: int) -> int:
    """Return a part of the training in steps: a float is a fraction of it, an int a number of steps already."""
    return int(part * total_steps + 0.5) if isinstance(part, float) else part
