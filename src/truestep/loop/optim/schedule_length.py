"""The length of a schedule, compared with the length of the run.

A mismatch with the length of the run is a warning at the start, not a surprise at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.optim import lr_scheduler as torch_schedules

from truestep.schedules import Horizon, horizon_of

Every = Literal["step", "epoch"]

_LEFT = 0.01
"""Mismatch between schedule and run length that is tolerated without a warning (fraction)."""


def bind(scheduler: Any, total_steps: int) -> bool:
    """Set the length of a schedule of `truestep.schedules`, and the lr that follows from it.

    The lr of every group becomes the value for a length known from the start, also after a resume
    (`last_epoch` above 0). A length that was passed to the schedule is not changed.

    Args:
        scheduler: any scheduler; only those of `truestep.schedules` are touched.
        total_steps: number of its steps in the whole run, including those before a resume; at least 1.

    Returns:
        True if the length was set.

    >>> from truestep import schedules
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> scheduler = schedules.warmup_cosine(optimizer, warmup=0.2)
    >>> bind(scheduler, 20)
    True
    >>> optimizer.param_groups[0]["lr"], scheduler.get_last_lr()
    (0.2, [0.2])
    """
    horizon = horizon_of(scheduler)
    if horizon is None or horizon.given:
        return False
    horizon.total_steps = total_steps
    compute_lrs(scheduler)
    lrs = [group["lr"] for group in scheduler.optimizer.param_groups]
    scheduler._last_lr = [lr.clone() if isinstance(lr, torch.Tensor) else lr for lr in lrs]
    return True


def compute_lrs(scheduler: Any) -> None:
    """Set the lr of every group to the value of a `LambdaLR` at its current step."""
    groups = scheduler.optimizer.param_groups
    for group, base_lr, factor in zip(groups, scheduler.base_lrs, scheduler.lr_lambdas, strict=True):
        set_lr(group, base_lr * factor(scheduler.last_epoch))


def set_lr(group: dict[str, Any], lr: float) -> None:
    """Set the lr of a parameter group; a tensor is filled in place, since compiled steps read it."""
    if isinstance(group["lr"], torch.Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def mismatch(scheduler: Any, total: int, every: Every, other_total: int) -> str | None:
    """Return a sentence about a mismatch between the length of a scheduler and that of the run.

    Args:
        scheduler: any scheduler of torch or of `truestep.schedules`. Those without length (`StepLR`, `ExponentialLR`,
            `LambdaLR`, plateaus), those that repeat (`CosineAnnealingWarmRestarts`, cosines that fit at least twice)
            and classes of other packages have no mismatch.
        total: number of its steps in the whole run.
        every: unit of its steps, "step" or "epoch".
        other_total: length of the run in the other unit: epochs for "step", steps for "epoch"; 0 if unknown.

    Returns:
        One sentence with the remedy, or None without a mismatch.

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    >>> print(mismatch(cosine, 90, "step", 10))
    CosineAnnealingLR goes down and up every 20 of 90 steps: T_max=10 counts epochs; pass T_max=90 or every="epoch"
    >>> mismatch(cosine, 10, "epoch", 90) is None
    True
    """
    return _mismatch(scheduler, _Run(total, every, other_total))


@dataclass(frozen=True, slots=True)
class _Run:
    """Length of a run, or of the part of it that belongs to one scheduler."""

    total: int
    every: Every
    other_total: int
    end: str = "when the run ends"
    part: bool = False

    @property
    def unit(self) -> str:
        return f"{self.every}s"

    @property
    def other(self) -> str:
        return "epoch" if self.every == "step" else "step"

    def from_(self, start: int, end: int) -> _Run:
        """Return the part from `start` to `end`; `start` may be in the other unit, so both are shortened."""
        if end == self.total:
            return _Run(end - start, self.every, max(0, self.other_total - start), part=True)
        return _Run(end - start, self.every, end - start, "when the next one begins", part=True)

    def is_other(self, length: float) -> bool:
        """Return True if a length is that of the run in the other unit."""
        return length == self.other_total != self.total

    def say(self, what: str, argument: str, length: float) -> str:
        """Return the whole sentence: the mismatch, and the value to pass instead."""
        if self.is_other(length):
            counts = f"{argument}={length:g} counts {self.other}s"
            return f'{what}: {counts}; pass {argument}={self.total} or every="{self.other}"'
        return f"{what}; pass {argument}={self.total}"


def _mismatch(scheduler: Any, run: _Run) -> str | None:
    kind = type(scheduler)
    horizon = horizon_of(scheduler)
    if horizon is not None:
        return _ours(horizon, run)
    judge = _JUDGES.get(kind)
    return None if judge is None else judge(scheduler, run)


def _ours(horizon: Horizon, run: _Run) -> str | None:
    name, total, length = horizon.name, run.total, horizon.total_steps
    if horizon.needs_total:
        return f"{name} has no length; pass total_steps={total}"
    if length is not None and horizon.ends:
        if length * (1 - _LEFT) > total:
            return run.say(f"{name} is at {total} of its {length} steps {run.end}", "total_steps", length)
        if length < total * (1 - _LEFT):
            return run.say(f"{name} stays at its minimum after {length} of {total} {run.unit}", "total_steps", length)
    if horizon.warmup_steps >= total:
        return f"the warm-up of {name} takes {horizon.warmup_steps} of {total} {run.unit}; pass warmup=0.05"
    return None


def _cosine(scheduler: Any, run: _Run) -> str | None:
    length, total = scheduler.T_max, run.total
    if length >= total:
        left = 0.5 * (1 + math.cos(math.pi * total / length))
        if left <= _LEFT:
            return None
        return run.say(f"CosineAnnealingLR has {left:.0%} of its way left {run.end}", "T_max", length)
    if total < 2 * length:
        back = 0.5 * (1 - math.cos(math.pi * (total / length - 1)))
        if back <= _LEFT:
            return None
        rises = f"CosineAnnealingLR rises again after {length} of {total} {run.unit}, to {back:.0%} of its height"
        return run.say(rises, "T_max", length)
    if run.is_other(length):
        what = f"CosineAnnealingLR goes down and up every {2 * length} of {total} {run.unit}"
        return run.say(what, "T_max", length)
    return None


def _restarts(scheduler: Any, run: _Run) -> str | None:
    length = scheduler.T_0
    if length * (1 - _LEFT) <= run.total:
        return None
    what = f"CosineAnnealingWarmRestarts is at {run.total} of the {length} steps of its first period {run.end}"
    return run.say(what, "T_0", length)


def _one_cycle(scheduler: Any, run: _Run) -> str | None:
    length = scheduler.total_steps
    if length < run.total:
        what = f"OneCycleLR raises a ValueError after {length} of {run.total} {run.unit}"
        return run.say(what, "total_steps", length)
    if length * (1 - _LEFT) > run.total + 1:
        what = f"OneCycleLR is at {run.total} of its {length} steps {run.end}"
        return run.say(what, "total_steps", length)
    return None


def _linear(scheduler: Any, run: _Run) -> str | None:
    length = scheduler.total_iters
    falls = scheduler.end_factor < scheduler.start_factor
    if length * (1 - _LEFT) > run.total:
        what = f"LinearLR is at {run.total} of its {length} steps {run.end}"
        return run.say(what, "total_iters", length)
    if falls and scheduler.end_factor == 0 and length < run.total * (1 - _LEFT):
        return run.say(f"LinearLR is 0 after {length} of {run.total} {run.unit}", "total_iters", length)
    if falls and run.is_other(length) and length < run.total:
        return run.say(f"LinearLR has fallen after {length} of {run.total} {run.unit}", "total_iters", length)
    return None


def _polynomial(scheduler: Any, run: _Run) -> str | None:
    length = scheduler.total_iters
    if length >= run.total:
        left = float((1 - run.total / length) ** scheduler.power)
        if left <= _LEFT:
            return None
        return run.say(f"PolynomialLR has {left:.0%} of its way left {run.end}", "total_iters", length)
    if length < run.total * (1 - _LEFT):
        return run.say(f"PolynomialLR is 0 after {length} of {run.total} {run.unit}", "total_iters", length)
    return None


def _constant(scheduler: Any, run: _Run) -> str | None:
    length = scheduler.total_iters
    if run.part or scheduler.factor == 1 or length < run.total:
        return None
    what = f"ConstantLR multiplies the lr by {scheduler.factor:g} for {length} steps and the run has {run.total}"
    return f"{what}; pass total_iters below {run.total}"


def _milestones(scheduler: Any, run: _Run) -> str | None:
    milestones = sorted(scheduler.milestones)
    beyond = [milestone for milestone in milestones if milestone >= run.total]
    if beyond:
        names = ", ".join(str(milestone) for milestone in beyond)
        what = f"MultiStepLR never comes to milestone {names}: the run has {run.total} {run.unit}"
        other = ' or every="step"' if run.every == "epoch" and beyond[-1] < run.other_total else ""
        return f"{what}; pass milestones below {run.total}{other}"
    last = milestones[-1] if milestones else 0
    first_pass = run.every == "step" and last <= run.other_total and last * run.other_total < run.total
    if last and first_pass and run.other_total > 1 and scheduler.gamma < 1:
        what = f"MultiStepLR has passed its last milestone, {last}, in the first of {run.other_total} epochs"
        return f'{what}; pass milestones in steps or every="epoch"'
    return None


def _cycle(scheduler: Any, run: _Run) -> str | None:
    length = scheduler.total_size
    if length * (1 - _LEFT) <= run.total:
        return None
    what = f"CyclicLR is at {run.total} of the {length:g} steps of its first cycle {run.end}"
    return f"{what}; pass step_size_up and step_size_down that add up to {run.total} or less"


def _chained(scheduler: Any, run: _Run) -> str | None:
    return next((said for part in scheduler._schedulers if (said := _mismatch(part, run))), None)


def _sequential(scheduler: Any, run: _Run) -> str | None:
    milestones = [0, *scheduler._milestones]
    if milestones[-1] >= run.total:
        late = type(scheduler._schedulers[-1]).__name__
        what = f"SequentialLR never comes to milestone {milestones[-1]}, where {late} begins: the run has {run.total}"
        other = ' or every="step"' if run.every == "epoch" and milestones[-1] < run.other_total else ""
        return f"{what} {run.unit}; pass milestones below {run.total}{other}"
    ends = [*milestones[1:], run.total]
    for part, start, end in zip(scheduler._schedulers, milestones, ends, strict=True):
        said = _mismatch(part, run.from_(start, end))
        if said:
            return f"in SequentialLR from {start} to {end}, {said}"
    return None


_JUDGES = {
    torch_schedules.CosineAnnealingLR: _cosine,
    torch_schedules.CosineAnnealingWarmRestarts: _restarts,
    torch_schedules.OneCycleLR: _one_cycle,
    torch_schedules.LinearLR: _linear,
    torch_schedules.PolynomialLR: _polynomial,
    torch_schedules.ConstantLR: _constant,
    torch_schedules.MultiStepLR: _milestones,
    torch_schedules.CyclicLR: _cycle,
    torch_schedules.ChainedScheduler: _chained,
    torch_schedules.SequentialLR: _sequential,
}
"""By exact class: a subclass may have changed the meaning of its arguments."""
