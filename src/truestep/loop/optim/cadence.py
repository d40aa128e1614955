"""The number of updates of a run: planned when its first loop begins, compared with the actual number later.

A schedule takes its length from the run before the first update, when only the number of batches is known: one
micro-step for each is assumed. A body may make several, or none, so the first two bodies and the first epoch are
compared with the plan, and a schedule with another length is a warning.
"""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep.errors import OptimizerNotStepped, UnboundSchedule
from truestep.loop.optim.schedule_length import bind, mismatch
from truestep.loop.optim.schedulers import Every, HorizonWarning, Schedule
from truestep.loop.process.stacklevel import outside
from truestep.schedules import horizon_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truestep.loop.optim.updates import Updates
    from truestep.loop.settings.limits import Limits

_BODIES = 2
"""Number of bodies to compare: two, to distinguish an update in every second body from one in each."""


class Measure(NamedTuple):
    """Length of the first loop of a run.

    Attributes:
        name: name of its loader; "steps" for a loop over steps.
        length: number of its batches or steps; None if unknown.
        repeats: True if it is repeated in every epoch.
    """

    name: str
    length: int | None
    repeats: bool

    @property
    def is_steps(self) -> bool:
        """Return True if it is a loop over steps, each with at least one update."""
        return self.name == "steps"


class Cadence:
    """Compares the planned with the actual number of updates of a run.

    Args:
        updates: of the optimizers of the run, by name.
        schedules: of the run, by name.
        limits: length of the run.
        restored: the measure of the plan of a stopped run; None for a new run.
    """

    def __init__(
        self,
        updates: Mapping[str, Updates],
        schedules: Mapping[str, Schedule],
        limits: Limits,
        restored: list[Any] | None = None,
    ) -> None:
        self.measure: Measure | None = None
        self.is_watching = False
        """True if the next body is one of those that are compared."""
        self._updates, self._schedules, self._limits = updates, schedules, limits
        self._restored = Measure(*restored) if restored else None
        self._bodies: list[list[tuple[int, int]]] = []
        self._epoch_judged = False
        self._said: set[tuple[str, str]] = set()

    def begin(self, measure: Measure) -> None:
        """Set the length of every schedule to that of the run; once.

        Args:
            measure: the loop that begins. A resumed run keeps that of its plan, since it may begin with another loop of
                a later epoch.

        Raises:
            UnboundSchedule: a schedule takes its length from the run, which has no known length.
        """
        if self.measure is not None:
            return
        if self._restored is not None and self._restored.name != measure.name:
            measure = self._restored
        self.measure = measure
        for updates in self._updates.values():
            for schedule in updates.schedules:
                self._bind(schedule, updates)
            self._judge(updates, None, "", every="epoch")
        self.is_watching = bool(self._schedules)
        self._bodies = [self._counts()]

    def add(self, schedule: Schedule, updates: Updates) -> None:
        """Set the length of a schedule that was added during the run to the rest of the run."""
        if self.measure is not None:
            self._bind(schedule, updates)
            self._judge(updates, self._planned(updates, assumed=False), "", every=schedule.every)

    def body_ended(self) -> None:
        """Compare the first bodies with the plan."""
        self._bodies.append(self._counts())
        if len(self._bodies) <= _BODIES:
            return
        self.is_watching = False
        for number, updates in enumerate(self._updates.values()):
            counts = [body[number] for body in self._bodies if number < len(body)]
            if len(counts) > _BODIES:
                self._judge_bodies(
                    updates,
                    micro_steps=[after[0] - before[0] for before, after in pairwise(counts)],
                    closed=[after[1] - before[1] for before, after in pairwise(counts)],
                )

    def loop_ended(self, *, in_epoch: bool) -> None:
        """Compare the updates of a loop outside of epochs with the plan."""
        if self.measure is None or in_epoch or not self.measure.is_steps or self._limits.max_steps is not None:
            return
        for updates in self._updates.values():
            if updates.made:
                self._judge(updates, updates.made, "the loop has ended", own_only=True)

    def epoch_ended(self, epochs: int, global_step: int) -> None:
        """Compare the updates of the first epoch with the plan."""
        if self._epoch_judged:
            return
        self._epoch_judged = True
        if epochs != 1 or not global_step:
            return
        limits = self._limits
        for updates in self._updates.values():
            if not updates.made:
                self._warn_of_unused(updates)
                continue
            totals = [] if limits.max_epochs is None else [updates.made * limits.max_epochs]
            if limits.max_steps is not None:
                totals.append(round(updates.made * limits.max_steps / global_step))
            if totals:
                self._judge(updates, min(totals), f"the first epoch made {_amount(updates.made, 'update')}")

    def _planned(self, updates: Updates, *, assumed: bool, micro_steps: int = 1, closed: int = 1) -> int | None:
        """Return the number of updates of an optimizer in the whole run; None if unknown.

        Args:
            updates: of the optimizer.
            assumed: True to treat a loop over steps outside of epochs as the whole run, if there is no other limit.
            micro_steps: number in each body of a loop over a loader; 0 if the program closes the windows.
            closed: number of windows that close in each body if `micro_steps` is 0, and in each step.
        """
        measure, limits = self.measure, self._limits
        assert measure is not None
        total = limits.max_steps
        if measure.length is None:
            return total
        passes: int | None = limits.max_epochs
        if measure.is_steps:
            each = measure.length * closed
            if not measure.repeats:
                passes = 1 if assumed else None
        elif micro_steps:
            each = math.ceil(measure.length * micro_steps / updates.window.accumulate)
        else:
            each = measure.length * closed
        if passes is None:
            return total
        return each * passes if total is None else min(total, each * passes)

    def _bind(self, schedule: Schedule, updates: Updates) -> None:
        by_step = schedule.every == "step"
        total = self._planned(updates, assumed=True) if by_step else self._limits.max_epochs
        horizon = horizon_of(schedule.scheduler)
        if horizon is None or horizon.given:
            return
        if total is None:
            if horizon.needs_total:
                raise UnboundSchedule(
                    f'the schedule "{schedule.name}" takes its length from the run, which has no known length',
                    expected="expected max_steps, or max_epochs and a loader of known length",
                    remedy="pass max_steps=... to Run, or total_steps=... to the schedule",
                )
            return
        total = max(1, total - schedule.start)
        bind(schedule.scheduler, total)
        if horizon.ends and schedule.every == "step":
            schedule.end = total

    def _counts(self) -> list[tuple[int, int]]:
        return [(updates.window.micro_steps_ever, updates.made) for updates in self._updates.values()]

    def _judge_bodies(self, updates: Updates, micro_steps: list[int], closed: list[int]) -> None:
        """Compare the schedules of an optimizer with the updates of the first bodies, if these are equally many."""
        measure, accumulate = self.measure, updates.window.accumulate
        assert measure is not None
        each = closed[0] if closed[0] and len(set(closed)) == 1 else 0
        if measure.is_steps:
            if each:
                self._judge(updates, self._planned(updates, assumed=False, closed=each), "")
            if each > 1 and self._limits.max_steps is None:
                total = self._planned(updates, assumed=True, closed=each)
                self._judge(updates, total, f"each step makes {each} updates", own_only=True)
            return
        if micro_steps[0]:
            full = sum(micro_steps) // accumulate
            if len(set(micro_steps)) > 1 or sum(closed) != full:
                return  # irregular, or the program closes the windows: judged after the whole epoch
            total = self._planned(updates, assumed=False, micro_steps=micro_steps[0])
            as_planned, amount = micro_steps[0] == 1, _amount(micro_steps[0], "micro-step")
        elif each:
            total = self._planned(updates, assumed=False, micro_steps=0, closed=each)
            as_planned, amount = each == 1 == accumulate, _amount(each, "update")
        else:
            return
        self._judge(updates, total, "" if as_planned else f"each batch makes {amount}", own_only=not as_planned)

    def _judge(
        self, updates: Updates, total: int | None, because: str, *, own_only: bool = False, every: Every = "step"
    ) -> None:
        """Warn of schedules that are not as long as the run.

        Args:
            updates: of the optimizer.
            total: number of its updates in the whole run; None if unknown.
            because: the evidence for the total, for the message.
            own_only: ignore lengths that the user passed, which may be right although those of the run are not.
            every: unit of the schedules to check.
        """
        epochs = self._limits.max_epochs
        for schedule in updates.schedules:
            own, other = (total, epochs) if every == "step" else (epochs, total)
            if own is None or schedule.every != every or (own_only and schedule.end is None):
                continue
            own = max(1, own - schedule.start)
            sentence = mismatch(schedule.scheduler, own, every, other or 0)
            if sentence and (schedule.name, sentence) not in self._said:
                self._said.add((schedule.name, sentence))
                why = f"{because}: " if because else ""
                warnings.warn(f'schedule "{schedule.name}": {why}{sentence}', HorizonWarning, stacklevel=outside())

    def _warn_of_unused(self, updates: Updates) -> None:
        if not updates.reached_by:
            return
        warnings.warn(
            f'optimizer "{updates.name}" ({type(updates.optimizer).__name__}) made no update in the first epoch, but '
            f'losses of "{updates.reached_by}" reach its parameters: pass all optimizers that a loss updates to '
            "run.step(loss, optimizer=[...])",
            OptimizerNotStepped,
            stacklevel=outside(),
        )


def _amount(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
