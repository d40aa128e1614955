from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    LoaderEnded,
    LoaderStarted,
    OptimizerStepped,
    RunEnded,
    SchedulerBuilt,
    SchedulerStepped,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._cadence import barely_begun, run_down, still_warming, too_far
from truestep.rules._conditions import FINISHED
from truestep.rules._pace import RunCounts, ScheduleCounts
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import schedules
from truestep.syntax import Program, Suspicion


class SchedulerWrongCadence(Rule):
    """A schedule made for epochs is stepped for every batch, or one made for steps once per epoch.

    What it does
    ------------
    Compares the length of a schedule (``T_max``, ``total_steps``, ``total_iters``, milestones) with the number of its
    steps, and reads the learning rates from the optimizer, for every kind of schedule. Reports

    - cosines that run past their end and rise again, and polynomials that stay at zero;
    - milestones and linear schedules that end in the first epochs;
    - learning rates that were negative, or negligible for half of the training;
    - at the end of a finished run, schedules and warm-ups that have barely begun.

    Why it matters
    --------------
    The learning rate is not the intended one: it rises and falls many times, becomes negligible early, or never leaves
    its initial values. The loss still falls, so nothing looks broken.

    Example
    -------
    ::

        scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
        for epoch in range(epochs):
            for x, y in loader:
                ...
                optimizer.step()
                scheduler.step()        # epochs * len(loader) steps through a schedule of `epochs`

    Fix
    ---
    Step the schedule in the unit that it counts, or set its length to the number of its steps::

        scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(loader))

    Known false alarms
    ------------------
    A ``CosineAnnealingLR`` that rises and falls within an epoch on purpose (``CosineAnnealingWarmRestarts`` and
    ``CyclicLR`` are made for that and are not reported). Runs that stop early by design have low confidence, as do
    cosines that rise again from epoch to epoch. Not reported: warm-ups that are over, learning rates that are turned
    off at once, and warm restarts, cycles, ``ConstantLR`` and ``SWALR``, which require no particular pace.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    id = "scheduler-wrong-cadence"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (BackwardEnded, BatchDrawn, LoaderEnded, LoaderStarted, OptimizerStepped, SchedulerStepped)
    needs = (SchedulerBuilt, SchedulerStepped, FINISHED)
    explains = ("learning-rate-dead", "learning-rate-off-course")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return schedules.scheduler_wrong_cadence(program)

    def __init__(self) -> None:
        super().__init__()
        self._counts = RunCounts()
        self._judged = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._judged else "no schedule that depends on its number of steps")

    def observe(self, event: Event, run: Progress) -> None:
        self._counts.observe(event, run)
        if isinstance(event, SchedulerStepped):
            self._judge(self._counts.paces[event.scheduler], run, ended=False)

    def again(self, event: Event, times: int) -> None:
        self._counts.count(event, times)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for pace in self._counts.paces.values():
            self._judge(pace, run, ended=event.how == "finished")

    def _judge(self, pace: ScheduleCounts, run: Progress, *, ended: bool) -> None:
        built = run.schedulers.get(pace.scheduler)
        if built is None or built.periodic or pace.by_epoch:
            return
        self._judged = True
        misfit = too_far(built, pace, self._counts, run, ended=ended)
        if misfit is None or misfit.confidence is not Confidence.HIGH:
            misfit = run_down(built, pace, self._counts, run) or misfit
        if misfit is None and ended:
            misfit = barely_begun(built, pace, self._counts, run)
        if ended and (misfit is None or misfit.confidence is Confidence.LOW):
            misfit = still_warming(built, pace, self._counts, run) or misfit
        if misfit is None:
            return
        made = f"built for {built.horizon} scheduler steps" if built.horizon else f"{built.kind} is built"
        draft = self.report(
            pace.site,
            misfit.message,
            run=run,
            label=f"steps {built.name}",
            related=(Mark(built.site, made),) if built.site else (),
            help=misfit.help,
            unit="scheduler steps",
            key=pace.scheduler,
        )
        draft.confidence, draft.cost = misfit.confidence, misfit.cost
        draft.count, draft.total, draft.first_step = pace.steps, None, pace.first_step
