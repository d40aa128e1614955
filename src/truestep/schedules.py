"""Learning rate schedules with a warm-up, as plain `LambdaLR` objects.

    scheduler = truestep.schedules.warmup_cosine(optimizer, warmup=0.05, total_steps=epochs * len(loader))

Inside a run `total_steps` is left out: the run knows how long it is and tells the schedule when its loop starts. The
factor on the first step is 1 / (warmup_steps + 1), and the minimum is reached at `total_steps`, one step after the last
one: no step is made with an lr of 0. That is the convention of nanoGPT and torchtitan; Transformers' schedules begin
with one step at 0. After `total_steps` the lr stays at the minimum.
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
    """What one schedule knows of the length of the training.

    Attributes:
        name: the function that made the schedule.
        warmup: a fraction of `total_steps` in [0, 1), or a number of steps.
        ends: whether the schedule has an end, which has to be known.
        total_steps: how often the schedule is stepped in the whole training; None while that is unknown.
        given: whether `total_steps` was given by the caller.
        arguments: what the function was called with, to tell a schedule that was changed between two starts.
    """

    name: str
    warmup: float
    ends: bool
    total_steps: int | None
    given: bool
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def needs_total(self) -> bool:
        """Whether the schedule cannot be stepped before its length is known."""
        return self.total_steps is None and (self.ends or isinstance(self.warmup, float))

    @property
    def warmup_steps(self) -> int:
        """Steps of the warm-up, once the length is known."""
        return _steps(self.warmup, self.total_steps or 0)


def horizon_of(scheduler: object) -> Horizon | None:
    """Return what a schedule of this module knows of its length; None for any other scheduler."""
    factors = getattr(scheduler, "lr_lambdas", None) or [None]
    horizon = getattr(factors[0], "horizon", None)
    return horizon if isinstance(horizon, Horizon) else None


def warmup_cosine(
    optimizer: Optimizer, warmup: float = 0.05, *, min_lr_ratio: float = 0.0, total_steps: int | None = None
) -> LambdaLR:
    """Raise the lr linearly, then lower it along half a cosine.

    Args:
        optimizer: its groups' lr are the peak, each group its own.
        warmup: a float in [0, 1) is a fraction of `total_steps`, rounded to whole steps; an int is a number of steps.
        min_lr_ratio: the lr from `total_steps` on, as a part of the peak, in [0, 1].
        total_steps: how often `step()` will be called; may be left out inside a run.

    Raises:
        BadSchedule: an argument out of its range.
        UnboundSchedule: by `scheduler.step()`, when the length is not known by then.

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
    """Raise the lr linearly, keep it, and lower it at the end (warm-up, stable, decay).

    Args:
        optimizer: its groups' lr are the peak, each group its own.
        warmup: a float in [0, 1) is a fraction of `total_steps`, rounded to whole steps; an int is a number of steps.
        decay: a float in [0, 1] is a fraction of `total_steps`, an int a number of steps; it never cuts the warm-up.
        shape: how it falls over the decay's progress p: "linear" 1 - p, "cosine" half a cosine, "sqrt" 1 - sqrt(p).
        min_lr_ratio: the lr from `total_steps` on, as a part of the peak, in [0, 1].
        total_steps: how often `step()` will be called; may be left out inside a run.

    Raises:
        BadSchedule: an argument out of its range.
        UnboundSchedule: by `scheduler.step()`, when the length is not known by then.

    Source: Hu et al., MiniCPM (arXiv:2404.06395); shape and length of the decay: Hägele et al. (arXiv:2405.18392).

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = wsd(optimizer, warmup=1, decay=4, total_steps=8)
    >>> [round(scheduler.lr_lambdas[0](step), 3) for step in range(9)]
    [0.5, 1.0, 1.0, 1.0, 1.0, 0.5, 0.293, 0.134, 0.0]
    """
    if shape not in _FALLS:
        raise BadSchedule(
            f'"{shape}" is not a shape of a decay',
            expected='expected "linear", "cosine" or "sqrt"',
            remedy='pass shape="sqrt"',
        )
    if isinstance(decay, bool) or decay < 0 or (isinstance(decay, float) and decay > 1):
        raise BadSchedule(
            f"decay={decay!r} is neither a part of the training nor a number of steps",
            expected="expected a float in [0, 1] or an int of at least 0",
            remedy="pass decay=0.2 for the last fifth",
        )
    return _decaying("wsd", optimizer, warmup, shape, min_lr_ratio, total_steps, decay)


def inverse_sqrt(
    optimizer: Optimizer, warmup: float = 0.05, *, timescale: int | None = None, total_steps: int | None = None
) -> LambdaLR:
    """Raise the lr linearly, then lower it with the inverse square root of the step. It has no end.

    Args:
        optimizer: its groups' lr are the peak, each group its own.
        warmup: a float in [0, 1) is a fraction of `total_steps`; with an int, no length has to be known.
        timescale: after the warm-up, steps in which the lr falls to 1 / sqrt(2) of the peak; the warm-up plus 1 unless
            given.
        total_steps: how often `step()` will be called; may be left out inside a run, or where `warmup` is an int.

    Raises:
        BadSchedule: an argument out of its range.
        UnboundSchedule: by `scheduler.step()`, when `warmup` is a fraction and the length is not known by then.

    Source: Vaswani et al. (arXiv:1706.03762), section 5.3, with their step number one higher than here.

    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = inverse_sqrt(optimizer, warmup=1)
    >>> [round(scheduler.lr_lambdas[0](step), 3) for step in range(8)]
    [0.5, 1.0, 0.816, 0.707, 0.632, 0.577, 0.535, 0.5]
    """
    if timescale is not None and (isinstance(timescale, bool) or timescale < 1):
        raise BadSchedule(
            f"timescale={timescale!r} is not a number of steps",
            expected="expected an int of at least 1",
            remedy="leave timescale= out to take the warm-up's",
        )

    def after(step: int, warmup_steps: int, total_steps: int) -> float:
        scale = timescale or warmup_steps + 1
        return math.sqrt(scale / (scale + step - warmup_steps))

    arguments: dict[str, object] = {"timescale": timescale}
    return _schedule("inverse_sqrt", optimizer, warmup, total_steps, after, ends=False, arguments=arguments)


def constant(optimizer: Optimizer, warmup: float = 0.05, *, total_steps: int | None = None) -> LambdaLR:
    """Raise the lr linearly, then keep it. It has no end.

    Args:
        optimizer: its groups' lr are kept, each group its own.
        warmup: a float in [0, 1) is a fraction of `total_steps`; with an int, no length has to be known.
        total_steps: how often `step()` will be called; may be left out inside a run, or where `warmup` is an int.

    Raises:
        BadSchedule: an argument out of its range.
        UnboundSchedule: by `scheduler.step()`, when `warmup` is a fraction and the length is not known by then.

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
            f"min_lr_ratio={min_lr_ratio!r} is not a part of the peak lr",
            expected="expected a number in [0, 1]",
            remedy="pass min_lr_ratio=0.1 to end at a tenth of the lr",
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
            f"warmup={warmup!r} is neither a part of the training nor a number of steps",
            expected="expected a float in [0, 1) or an int of at least 0",
            remedy="pass warmup=0.05 for the first twentieth, or warmup=100 for 100 steps",
        )
    if total_steps is not None and (isinstance(total_steps, bool) or total_steps < 1):
        raise BadSchedule(
            f"total_steps={total_steps!r} is not a number of steps",
            expected="expected an int of at least 1",
            remedy="pass total_steps=epochs * len(loader), or leave it out inside a run",
        )
    given = {"warmup": warmup, "total_steps": total_steps, **(arguments or {})}
    horizon = Horizon(name, warmup, ends, total_steps, given=total_steps is not None, arguments=given)

    def factor(step: int) -> float:
        if horizon.needs_total:
            if step == 0:
                return 1.0  # the scheduler is being built: nothing is stepped with this lr before a run binds it
            raise UnboundSchedule(
                f"{name} was stepped and does not know how long the training is",
                expected="expected total_steps=, or a run that tells it when its loop starts",
                remedy="pass total_steps=epochs * len(loader): how often step() is called",
            )
        warmup_steps = horizon.warmup_steps
        if step < warmup_steps and not (ends and step >= (horizon.total_steps or 0)):
            return (step + 1) / (warmup_steps + 1)
        return after(step, warmup_steps, horizon.total_steps or 0)

    vars(factor)["horizon"] = horizon  # a function's attribute is in no state_dict, a callable object's are
    return LambdaLR(optimizer, factor)


def _steps(part: float, total_steps: int) -> int:
    """Return a part of the training in steps: a float is a fraction of it, an int already steps."""
    return int(part * total_steps + 0.5) if isinstance(part, float) else part
