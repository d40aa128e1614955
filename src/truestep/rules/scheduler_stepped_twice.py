from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import schedules
from truestep.syntax import Program, Suspicion

_ENOUGH = 3
"""Least number of calls without training before a report."""


@dataclass(slots=True)
class _Extra:
    """Calls at one line without any training since the previous call."""

    evaluating: bool
    after: Site | None
    """Line of the previous scheduler step."""
    first_step: int
    calls: int = 0


class SchedulerSteppedTwice(Rule):
    """A schedule is stepped twice for the same unit of training, or also in the evaluation.

    What it does
    ------------
    Finds lines that step a schedule without any training since its previous step: always once more after the step at
    another line, or during an evaluation, between calls of the model without gradients on batches of a loader that it
    is not trained on.

    Why it matters
    --------------
    The schedule runs twice as fast as planned, or at a pace that depends on the size of the validation set. In the
    proof a learning rate that falls by a quarter in every epoch is stepped twice: 73 % of held-out points are right
    instead of 84 %.

    Example
    -------
    ::

        for epoch in range(epochs):
            train_one_epoch(model, loader, optimizer, scheduler)    # ends with scheduler.step()
            validate(model, val_loader)
            scheduler.step()

    Fix
    ---
    Step a schedule at only one line::

        for epoch in range(epochs):
            train_one_epoch(model, loader, optimizer)
            validate(model, val_loader)
            scheduler.step()

    Known false alarms
    ------------------
    A schedule with a length that counts both steps on purpose has low confidence if the run ends with the schedule. Not
    reported: steps that advance a new schedule to the position of an earlier run, several steps by one line (as by
    Accelerate for several processes), schedules that are stepped with an epoch, and steps at a skipped
    update.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    id = "scheduler-stepped-twice"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (ev.BackwardEnded, ev.ModelCalled, ev.OptimizerStepped, ev.SchedulerStepped)
    needs = (ev.SchedulerStepped,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return schedules.scheduler_stepped_twice(program)

    def __init__(self) -> None:
        super().__init__()
        self._trained_on: set[int | None] = {None}
        self._idle: dict[int, bool] = {}
        """Schedules stepped since the latest backward pass, and whether an evaluation has run since that step."""
        self._latest: dict[int, Site | None] = {}
        self._paced: dict[tuple[int, Site | None], int] = {}
        """Schedule and line to the number of steps that followed training."""
        self._extra: dict[tuple[int, Site | None], _Extra] = {}
        self._steps: dict[int, int] = {}

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._steps else "no step of a schedule without an epoch")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.BackwardEnded():
                self._trained_on.add(event.loader)
                self._idle.clear()
            case ev.ModelCalled(grad=False) if event.loader not in self._trained_on:
                for scheduler in self._idle:
                    self._idle[scheduler] = True
            case ev.SchedulerStepped(epoch_argument=False, first=False):
                self._stepped(event, run)

    def _stepped(self, event: ev.SchedulerStepped, run: Progress) -> None:
        key, evaluating = (event.scheduler, event.site), self._idle.get(event.scheduler)
        self._steps[event.scheduler] = self._steps.get(event.scheduler, 0) + 1
        self._idle[event.scheduler] = False
        before, self._latest[event.scheduler] = self._latest.get(event.scheduler), event.site
        if event.optimizer_steps:
            self._paced[key] = self._paced.get(key, 0) + 1
        elif (evaluating and not event.metric) or (evaluating is False and self._other(before, event)):
            extra = self._extra.setdefault(key, _Extra(evaluating, before, run.step))
            extra.evaluating = extra.evaluating and evaluating
            extra.calls += 1
            self._judge(key, extra, run)

    def _other(self, before: Site | None, event: ev.SchedulerStepped) -> bool:
        """Return True if another line made the previous scheduler step, and does so after training."""
        return before is not None and before != event.site and (event.scheduler, before) in self._paced

    def again(self, event: Event, times: int) -> None:
        if not isinstance(event, ev.SchedulerStepped) or event.scheduler not in self._steps:
            return
        self._steps[event.scheduler] += times
        key = (event.scheduler, event.site)
        if event.optimizer_steps and key in self._paced:
            self._paced[key] += times
        elif not event.optimizer_steps and key in self._extra:
            self._extra[key].calls += times

    def _judge(self, key: tuple[int, Site | None], extra: _Extra, run: Progress) -> None:
        scheduler, site = key
        paced = self._paced.get(key, 0)
        partner = self._paced.get((scheduler, extra.after), 0)
        twice = not paced and abs(partner - extra.calls) <= 1
        if extra.calls < _ENOUGH or not (twice or extra.evaluating):
            self.withdraw(key)
            return
        name = run.scheduler_name(scheduler)
        message = "the schedule was stepped in the evaluation, without any training since its last step"
        help = f"call `{name}.step()` only in the training"
        if twice:
            message = "the schedule was stepped a second time, without any training since its last step"
            help = f"call `{name}.step()` at only one of the two lines"
        draft = self.report(
            site,
            message,
            run=run,
            label=f"steps {name} again",
            related=(Mark(extra.after, "stepped it before"),) if extra.after not in (None, site) else (),
            help=help,
            confidence=Confidence.MEDIUM if paced else Confidence.HIGH,  # may be an iteration without training
            unit="scheduler steps",
            key=key,
        )
        total = self._steps[scheduler]
        draft.count, draft.total, draft.first_step = extra.calls, total, extra.first_step
        draft.cost = f"{total} scheduler steps were made, of which only {total - extra.calls} followed any training"

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        for key, extra in self._extra.items():
            self._judge(key, extra, run)
            horizon = run.schedulers[key[0]].horizon if key[0] in run.schedulers else None
            if key in self._drafts and horizon and 0.9 * horizon <= self._steps[key[0]] <= horizon:
                self._drafts[key].confidence = Confidence.LOW
