"""Schedulers: built and stepped. Seams: ``_update_lr`` for those that share the base class's ``step``, else ``step``.

The base class's ``step`` is not wrapped if there is ``_update_lr``: it warns with ``stacklevel=2``, which would point
at the wrapper. Torch 2.8 has no ``_update_lr``, and the warning of its ``step`` points at itself for any caller.
"""

from __future__ import annotations

import functools
import linecache
import math
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from truestep.events import Event, FactorsFollowed, ScheduleMoved, SchedulerBuilt, SchedulerStepped, Site
from truestep.probes.context.names import arguments, target
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.values import has_values
from truestep.probes.optimizer.schedule_lengths import counts_read, is_of_epochs
from truestep.probes.optimizer.schedule_plans import planned
from truestep.seams.patch import patch

_PERIODIC = ("CosineAnnealingWarmRestarts", "CyclicLR")
_VANISHED = 1e-6
_SWITCHED = 0.5
_COLD = 0.1
_LEAST_VALUES = 5
_MOSTLY, _FAR = 0.8, 0.8
"""Least share of falls of a metric that falls, and its largest value, as a part of the first."""
_JUMP = 1.5
"""Least factor by which the first step of a schedule changes a rate that was loaded, as one that begins again does."""
_FROM_START = frozenset({
    "CosineAnnealingWarmRestarts", "CyclicLR", "LambdaLR", "LinearLR", "OneCycleLR", "SequentialLR",
})  # fmt: skip
"""Schedules that compute a rate from their position; others go on from the rate that they find."""
_MOST_VALUES = 4
"""Factors that are counted."""
_EXCEEDS = 1.001
"""Quotient of a factor and a rate from which the factor is the larger one."""
_MOST_PLANS = 16
"""Schedules with a plan, from the start of the run."""


class _Falls:
    """The course of a metric."""

    __slots__ = ("_falls", "_fell", "_first", "_last", "_steps")

    def __init__(self) -> None:
        self._steps = self._falls = 0
        self._first = self._last = 0.0
        self._fell = False

    def add(self, value: float) -> bool:
        """Enter a value; return True if nearly all values were once less than the one before, and this is far less.

        A rate that is cut for the wrong mode ends the fall.
        """
        self._first = value if not self._steps else self._first
        self._falls += self._steps > 0 and value < self._last
        self._steps, self._last = self._steps + 1, value
        self._fell |= self._steps > _LEAST_VALUES and self._falls >= _MOSTLY * (self._steps - 1)
        return self._fell and 0 < value < _FAR * self._first


class _Factors:
    """The course of the factors that the functions of a LambdaLR return, from its first position on."""

    __slots__ = ("base", "largest", "last", "optimizer", "since", "site", "steps", "values")

    def __init__(self, optimizer: int, site: Site | None) -> None:
        self.optimizer, self.site = optimizer, site
        self.base = self.largest = self.last = 0.0
        self.values = self.steps = self.since = 0

    def add(self, scheduler: Any) -> bool:
        """Enter the factors of a position; return False if they are unknown, or positions were left out."""
        rates, bases = _rates(scheduler), scheduler.base_lrs
        if scheduler.last_epoch != self.steps or len(rates) != len(bases) or not bases or min(bases) <= 0:
            return False
        base, factor = max(bases), max(rate / one for rate, one in zip(rates, bases, strict=True))
        if self.steps and base != self.base:
            return False
        self.values += self.values < _MOST_VALUES and (not self.steps or factor != self.last)
        self.since = 0 if not self.steps or factor > self.largest else self.since + 1
        self.base, self.largest, self.last = base, max(factor, self.largest), factor
        self.steps += 1
        return True


class SchedulerProbe(Probe):
    """Emits `SchedulerBuilt`, for the outermost of nested schedulers `SchedulerStepped`, at last `FactorsFollowed`."""

    def install(self, stack: ExitStack) -> None:
        from torch.optim import lr_scheduler as module

        self._steps_seen: dict[int, int] = {}
        self._since: dict[int, int] = {}
        """By key of a call: steps of its optimizer since the call before."""
        self._rates: dict[int, tuple[float, bool]] = {}
        """By scheduler: last learning rate relative to the first, and True if it has only grown."""
        self._counted: dict[int, int] = {}
        """Plateau schedule to its latest metric, if that was a whole number."""
        self._falls: dict[int, _Falls] = {}
        """Plateau schedule to the course of its metric."""
        self._factors: dict[int, _Factors] = {}
        """LambdaLR to its factors, as long as no position was left out, and none exceeds its rate."""
        self._larger: dict[int, _Factors] = {}
        """The others, with a factor that exceeds the rate, as factors should: they are not followed any more."""
        self._moved: set[int] = set()
        """Schedulers that were found at another position than after their steps."""
        self._fresh: dict[int, tuple[float, ...]] = {}
        """Schedule that was never stepped to the learning rates that it began with."""
        base = module.LRScheduler
        classes = [cls for cls in vars(module).values() if isinstance(cls, type) and issubclass(cls, base)]
        for cls in dict.fromkeys(classes):
            if "__init__" in vars(cls):
                self._watch_init(stack, cls)
            if "step" in vars(cls) and (cls is not base or not hasattr(base, "_update_lr")):
                self._watch_step(stack, cls)
        if hasattr(base, "_update_lr"):
            self._watch_update(stack, base)

    def _watch_init(self, stack: ExitStack, cls: Any) -> None:
        scene, original = self.scene, vars(cls)["__init__"]

        @functools.wraps(original)
        def __init__(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            scene.depth.schedule += 1
            try:
                original(scheduler, *args, **kwargs)
            finally:
                scene.depth.schedule -= 1
            if scene.active and scene.depth.schedule == 0:
                self.built(scheduler)

        patch(stack, cls, "__init__", __init__)

    def _watch_step(self, stack: ExitStack, cls: Any) -> None:
        scene, original = self.scene, vars(cls)["step"]

        @functools.wraps(original)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if not scene.active or scene.depth.schedule:
                return original(scheduler, *args, **kwargs)
            before = _rates(scheduler) if id(scheduler) in self._fresh else ()
            scene.depth.schedule += 1
            try:
                result = original(scheduler, *args, **kwargs)
            finally:
                scene.depth.schedule -= 1
            self.stepped(scheduler, args, kwargs, 0, before)
            return result

        patch(stack, cls, "step", step)

    def _watch_update(self, stack: ExitStack, base: Any) -> None:
        scene, coast, depth, frame = self.scene, self.scene.coast, self.scene.depth, sys._getframe
        original = vars(base)["_update_lr"]

        @functools.wraps(original)
        def _update_lr(scheduler: Any, epoch: int | None = None) -> Any:
            before = _rates(scheduler) if id(scheduler) in self._fresh else ()
            result = original(scheduler, epoch)
            if scene.active and not depth.schedule:
                key = id(scheduler) + frame(2).f_lasti if coast.on or coast.learning else 0
                if coast.on and coast.keys[coast.at] == key and self.repeats(scheduler, coast.events[coast.at]):
                    coast.at += 1
                    self._steps_seen[coast.events[coast.at - 1].scheduler] += self._since[key]  # type: ignore[attr-defined]
                else:
                    self.stepped(scheduler, (), {} if epoch is None else {"epoch": epoch}, key, before)
            return result

        patch(stack, base, "_update_lr", _update_lr)

    @sees
    def built(self, scheduler: Any) -> None:
        scene = self.scene
        number, new = scene.numbers.of("scheduler", scheduler)
        if not new:
            return
        site = scene.site()
        kind = type(scheduler).__name__
        plateau = kind == "ReduceLROnPlateau"
        scene.losses.every = scene.losses.every or plateau
        optimizer = self._optimizer(scheduler)
        last = _tail(scheduler)
        horizon = _horizon(scheduler)
        plan = planned(scheduler, horizon) if number <= _MOST_PLANS else ()
        scene.emit(
            SchedulerBuilt(
                scheduler=number,
                name=target(site, "scheduler"),
                kind=kind,
                optimizer=optimizer,
                horizon=horizon,
                tail="" if last is None else type(last).__name__,
                tail_horizon=None if last is None else _horizon(last),
                periodic=kind in _PERIODIC,
                mode=str(getattr(scheduler, "mode", "")) if plateau else "",
                patience=getattr(scheduler, "patience", None) if plateau else None,
                step_size=getattr(scheduler, "step_size", None) if kind == "StepLR" else None,
                gamma=getattr(scheduler, "gamma", None) if kind in ("StepLR", "ExponentialLR") else None,
                falls=_falls(scheduler),
                counts=counts_read(scheduler.lr_lambdas) if kind == "LambdaLR" else (),
                at_zero=_at_zero(scheduler),
                of_epochs=is_of_epochs(site),
                called=_is_called(site),
                asked_steps=tuple(step for step, _ in plan),
                asked_rates=tuple(rate for _, rate in plan),
                site=site,
            )
        )
        self._placed(number, scheduler, site)
        self._fresh[id(scheduler)] = _rates(scheduler)
        self._steps_seen[number] = scene.ledger.attempts.get(optimizer or 0, 0)
        self._rates[number] = (_part(scheduler) or 0.0, True)
        if kind == "LambdaLR" and optimizer is not None and len(self._factors) < _MOST_PLANS:
            self._factors[number] = _Factors(optimizer, site)
            self._follow(number, scheduler)

    def _follow(self, number: int, scheduler: Any) -> None:
        found = self._factors[number]
        known = found.add(scheduler)
        if not known or (found.steps > 1 and found.largest > _EXCEEDS * found.base):
            del self._factors[number]
        if known and number not in self._factors:
            self._larger[number] = found

    def last(self) -> Iterator[Event]:
        """Yield the factors of each LambdaLR that was stepped."""
        for number, found in (self._factors | self._larger).items():
            if found.steps > 1:
                yield FactorsFollowed(
                    scheduler=number,
                    optimizer=found.optimizer,
                    base=found.base,
                    largest=found.largest,
                    last=found.last,
                    steps=found.steps - 1,
                    since=found.since,
                    values=found.values,
                    site=found.site,
                )

    def _placed(self, number: int, scheduler: Any, site: Site | None) -> None:
        """Emit once that a schedule is at another position than after its steps."""
        position, steps = getattr(scheduler, "last_epoch", None), getattr(scheduler, "_step_count", None)
        if position.__class__ is steps.__class__ is int and position != steps - 1 and number not in self._moved:
            self._moved.add(number)
            self.scene.tell(ScheduleMoved, scheduler=number, site=site)

    def repeats(self, scheduler: Any, expected: Any) -> bool:
        """Return True if the learning rates after a recognized step are those of the expected event."""
        before = self._rates.get(expected.scheduler)
        try:
            if expected.at_zero == _at_zero(scheduler) and self._rate(expected.scheduler, scheduler) == expected.rate:
                if expected.scheduler in self._factors:
                    self._follow(expected.scheduler, scheduler)
                return True
        except Exception:
            self.scene.fail()
        if before is not None:
            self._rates[expected.scheduler] = before  # this step is examined again
        return False

    @sees
    def stepped(
        self, scheduler: Any, args: tuple[Any, ...], kwargs: dict[str, Any], key: int, before: tuple[float, ...] = ()
    ) -> None:
        """Emit a step of a schedule.

        Args:
            scheduler: the schedule.
            args: its arguments by position.
            kwargs: its arguments by name.
            key: the key by which the call is recognized in a later round; 0 without one.
            before: learning rates before its first step.
        """
        scene = self.scene
        scene.coast.account()
        number = scene.numbers.known("scheduler", scheduler)
        if number is None:
            self.built(scheduler)
            number = scene.numbers.known("scheduler", scheduler) or 0
        self._placed(number, scheduler, scene.site())
        if number in self._factors:
            self._follow(number, scheduler)
        done = scene.ledger.attempts.get(self._optimizer(scheduler) or 0, 0)
        since = done - self._steps_seen.get(number, 0)
        self._steps_seen[number] = done
        metric, same, named, site = "", False, "", scene.site()
        if type(scheduler).__name__ == "ReduceLROnPlateau":
            value: Any = args[0] if args else kwargs.get("metrics")
            metric, same = self._metric(value)
            if metric in ("float", "tensor") and self._falls.setdefault(number, _Falls()).add(float(value)):
                metric = "falling"
            if type(value) is int:
                metric = "count" if value == self._counted.get(number, value - 1) + 1 else metric
                self._counted[number] = value
            (named,) = arguments(site, ("metrics",))
        scene.tell(
            SchedulerStepped,
            scheduler=number,
            site=site,
            optimizer_steps=min(2, since),
            first=done == 0,
            epoch_argument="epoch" in kwargs or bool(args and not metric),
            metric=metric,
            metric_name=named,
            metric_is_training_loss=same,
            at_zero=_at_zero(scheduler),
            rate=self._rate(number, scheduler),
            jump=_jump(self._fresh.pop(id(scheduler), ()), before, scheduler),
        )
        if scene.coast.learning and key and not metric:
            self._since[key] = since
            scene.coast.name(key)

    def _rate(self, number: int, scheduler: Any) -> str:
        """Describe the learning rates in one word."""
        part = _part(scheduler)
        if part is None:
            return ""
        before, rising = self._rates.get(number, (part, False))
        if part < 0:
            return "negative"
        if part <= _VANISHED and not rising:  # one that was switched off has not vanished
            return "vanished" if before <= _SWITCHED else ""
        rising = rising and part > before
        self._rates[number] = (part, rising)
        return "warming" if rising and part <= _COLD else ""

    def _optimizer(self, scheduler: Any) -> int | None:
        """Return the number of a schedule's optimizer, also behind a wrapper (Accelerate's)."""
        optimizer = getattr(scheduler, "optimizer", None)
        number = self.scene.numbers.known("optimizer", optimizer)
        return (
            self.scene.numbers.known("optimizer", getattr(optimizer, "optimizer", None)) if number is None else number
        )

    def _metric(self, value: Any) -> tuple[str, bool]:
        """Return the kind of a plateau schedule's metric, and True if it is the loss of the latest backward pass."""
        scene = self.scene
        if isinstance(value, scene.torch.Tensor):
            kind = "tensor with graph" if value.requires_grad else "tensor"
            if value.device.type != "cpu" or value.numel() != 1 or not has_values(value):
                return kind, False
            value = value.item()
        else:
            kind = "float"
        try:
            number = float(value)
        except (TypeError, ValueError):
            return kind, False
        return ("nan" if math.isnan(number) else kind), scene.losses.last is not None and number == scene.losses.last


def _rates(scheduler: Any) -> tuple[float, ...]:
    """Return the learning rates of all groups; an empty tuple if one is a tensor."""
    rates = [group["lr"] for group in getattr(getattr(scheduler, "optimizer", None), "param_groups", ())]
    return tuple(map(float, rates)) if all(rate.__class__ in (float, int) for rate in rates) else ()


def _jump(first: tuple[float, ...], before: tuple[float, ...], scheduler: Any) -> tuple[float, float] | tuple[()]:
    """Return a rate before and after the first step of a schedule if it was another than at its start, and jumps."""
    pairs = zip(before, _rates(scheduler), strict=False)
    found = [(one, two) for one, two in pairs if one > 0 < two and max(one / two, two / one) >= _JUMP]
    begins = getattr(scheduler, "last_epoch", None) == 1 and type(scheduler).__name__ in _FROM_START
    return found[0] if found and begins and before != first else ()


def _at_zero(scheduler: Any) -> bool:
    """Return True if the learning rates of all groups are 0 now; a tensor is not read."""
    groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", ())
    for group in groups:
        rate = group["lr"]
        if rate.__class__ not in (float, int) or rate != 0:
            return False
    return bool(groups)


def _is_called(site: Site | None) -> bool:
    """Return True if a file may call `step` of the schedule that it builds at a site."""
    name = target(site, "").rpartition(".")[2].partition("[")[0]
    text = "" if site is None else "".join(linecache.getlines(site.path))
    return not name or not text or re.search(rf"\b(\w*sched\w*|{re.escape(name)})\b[^\n]*\.step\(", text) is not None


def _part(scheduler: Any) -> float | None:
    """Return the largest ratio of a group's current to its first learning rate; None if unknown."""
    largest = None
    for group in getattr(getattr(scheduler, "optimizer", None), "param_groups", ()):
        rate, first = group["lr"], group.get("initial_lr")
        if rate.__class__ not in (float, int) or first.__class__ not in (float, int) or first <= 0:
            return None
        part = rate / first
        if largest is None or part > largest:
            largest = part
    return largest


def _tail(scheduler: Any) -> Any:
    """Return the part of a compound schedule that determines its end; None without one."""
    kind = type(scheduler).__name__
    if kind == "SequentialLR":
        return scheduler._schedulers[-1]
    if kind == "ChainedScheduler":
        return next((part for part in scheduler._schedulers if type(part).__name__ == "CosineAnnealingLR"), None)
    return None


def _falls(scheduler: Any) -> bool:
    """Return True if a schedule with an end leaves the learning rate lower than it was."""
    kind = type(scheduler).__name__
    if kind == "MultiStepLR":
        return bool(scheduler.gamma < 1)
    return kind == "LinearLR" and bool(scheduler.end_factor < scheduler.start_factor)


def _horizon(scheduler: Any) -> int | None:
    """Return the number of steps that a schedule is configured for; None if unknown."""
    kind = type(scheduler).__name__
    attribute = {
        "CosineAnnealingLR": "T_max",
        "OneCycleLR": "total_steps",
        "PolynomialLR": "total_iters",
        "LinearLR": "total_iters",
        "ConstantLR": "total_iters",
    }.get(kind)
    value: Any = None
    if attribute is not None:
        value = getattr(scheduler, attribute, None)
    elif kind == "MultiStepLR":
        value = max(scheduler.milestones, default=None)
    elif kind == "SequentialLR":
        inner = scheduler._schedulers[-1]  # itself where a script appends it to the list that it was given
        last = None if inner is scheduler else _horizon(inner)
        value = None if last is None else scheduler._milestones[-1] + last
    elif kind == "ChainedScheduler":
        tail = _tail(scheduler)
        value = None if tail is None else _horizon(tail)
    return int(value) if isinstance(value, int | float) else None
