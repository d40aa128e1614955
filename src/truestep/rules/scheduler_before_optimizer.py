from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import schedules
from truestep.syntax import Program, Suspicion

_FEW_CALLS = 10
"""A first scheduler step after fewer model calls than this is at the very start of the training."""


@dataclass(slots=True)
class _Order:
    """State of a line that stepped a schedule before the first step of its optimizer."""

    sure: bool
    first_step: int
    calls: int = 1
    dropped: bool = False


class SchedulerBeforeOptimizer(Rule):
    """A schedule is stepped before the optimizer, in every epoch or in every step.

    What it does
    ------------
    Finds lines that step a schedule before the first step of its optimizer, at the very start of the training, and then
    repeatedly before the optimizer's steps of that epoch or batch.

    Why it matters
    --------------
    The first value of the schedule is never used, and the whole schedule runs one step early. With schedules that fall
    by a large factor per epoch, the learning rate of the first epoch is too small by that factor.

    Example
    -------
    ::

        for epoch in range(epochs):
            scheduler.step()
            for x, y in loader:
                ...
                optimizer.step()

    Fix
    ---
    Step the schedule after the optimizer::

        for epoch in range(epochs):
            for x, y in loader:
                ...
                optimizer.step()
            scheduler.step()

    Known false alarms
    ------------------
    A warm-up with ``LambdaLR`` that is stepped first on purpose, to skip a first learning rate of zero (medium
    confidence). Steps that a GradScaler skipped count as steps. Not reported: schedules that are stepped with an epoch
    or a metric, and steps that advance a schedule to the position of an earlier run.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    id = "scheduler-before-optimizer"
    since = "0.1"
    severity = Severity.WARNING
    account = "rate"
    watches = (ev.LoaderEnded, ev.ModelCalled, ev.OptimizerStepped, ev.ScalerStepped, ev.SchedulerStepped)
    needs = (ev.SchedulerStepped,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return schedules.scheduler_before_optimizer(program)

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0
        self._loop_ended = False
        self._plain = False
        """Whether a schedule was stepped without a metric or an epoch."""
        self._stepped_at: dict[int | None, Site | None] = {}
        self._orders: dict[tuple[int, Site | None], _Order] = {}

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._plain else "no step of a schedule without a metric")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.ModelCalled():
                self._calls += 1
            case ev.LoaderEnded():
                self._loop_ended = True
            case ev.OptimizerStepped() | ev.ScalerStepped():
                self._stepped_at[event.optimizer] = event.site
            case ev.SchedulerStepped(metric="", epoch_argument=False):
                self._plain = True
                self._scheduled(event, run)

    def _scheduled(self, event: ev.SchedulerStepped, run: Progress) -> None:
        built = run.schedulers.get(event.scheduler)
        if built is None or built.optimizer is None:
            return
        key, step = (event.scheduler, event.site), self._stepped_at.get(built.optimizer)
        order = self._orders.get(key)
        if order is None:
            if event.first and not event.optimizer_steps and built.optimizer not in self._stepped_at:
                at_once = self._calls < _FEW_CALLS and not self._loop_ended
                self._orders[key] = _Order(at_once, run.step)
            return
        order.calls += 1
        order.dropped |= not event.optimizer_steps or _above(step, event.site)
        if order.dropped:
            self.withdraw(key)
        elif order.sure:
            self._found(key, order, run, Confidence.MEDIUM if built.kind == "LambdaLR" else Confidence.HIGH)
        else:
            self._found(key, order, run, Confidence.LOW)

    def _found(self, key: tuple[int, Site | None], order: _Order, run: Progress, confidence: Confidence) -> None:
        optimizer = run.schedulers[key[0]].optimizer
        name = run.optimizer_name(optimizer)
        draft = self.report(
            key[1],
            "the schedule was stepped before the optimizer, and its first value was never used",
            run=run,
            label=f"first called before any step of {name}",
            related=(Mark(self._stepped_at.get(optimizer), f"{name} steps afterwards"),),
            help=f"call `{run.scheduler_name(key[0])}.step()` after `{name}.step()`",
            confidence=confidence,
            unit="scheduler steps",
            key=key,
        )
        draft.count, draft.total, draft.first_step = order.calls, order.calls, order.first_step

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, ev.SchedulerStepped) and (event.scheduler, event.site) in self._orders:
            self._orders[event.scheduler, event.site].calls += times

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        for key, order in self._orders.items():
            if key in self._drafts:
                self._drafts[key].count = self._drafts[key].total = order.calls
            elif order.calls == 1 and order.sure and run.schedulers[key[0]].optimizer in self._stepped_at:
                self._found(key, order, run, Confidence.LOW)


def _above(step: Site | None, schedule: Site | None) -> bool:
    """Return True if the optimizer's line is above the schedule's in the same function, so it runs first in a loop."""
    if step is None or schedule is None:
        return False
    return (step.path, step.function) == (schedule.path, schedule.function) and step.line < schedule.line
