from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    Event,
    LearningRateRead,
    OptimizerStepped,
    RunEnded,
    SchedulerBuilt,
    SchedulerStepped,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import schedules
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 10
_MOVES_BY_RATE = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD")
"""Optimizers of torch that change nothing at a learning rate of 0; others may."""


class LearningRateDead(Rule):
    """The learning rate is 0 for the whole run, and nothing is learned.

    What it does
    ------------
    Follows the learning rates that schedules set, and reads them at sampled steps. Reports finished runs in which they
    were 0 before the first step, set by a schedule or passed to the optimizer, and never above 0 at a sampled step, and
    those in which a schedule kept the only optimizer at 0 for its first updates, ten or more.

    Why it matters
    --------------
    Every step is computed but has no effect: in the proof the accuracy stays that of the initial weights. The usual
    cause is a warm-up that starts at 0 with a ``step()`` that is never called or is called once per epoch instead of
    once per step, a factor with integer division (``step // warmup``), or a learning rate that was rounded to 0.

    Example
    -------
    ::

        warmup = LambdaLR(optimizer, lambda step: min(1.0, step / 500))     # 0 for step 0
        for x, y in loader:
            train_on(x, y)
            optimizer.step()            # warmup.step() is missing

    Fix
    ---
    Step the schedule after every step of its optimizer::

            optimizer.step()
            warmup.step()

    Known false alarms
    ------------------
    None known. Not reported: a learning rate that rises later, an optimizer that a schedule lets wait while another one
    trains, and a learning rate of 0 in a sweep, where the same line builds optimizers with others. Runs that were
    stopped, interrupted or crashed are not judged.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    id = "learning-rate-dead"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (SchedulerBuilt, SchedulerStepped, OptimizerStepped, LearningRateRead)
    needs = (LearningRateRead, OptimizerStepped, FINISHED)
    explains = (
        "loss-at-chance",
        "loss-never-changes",
    )

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return schedules.learning_rate_dead(program)

    def __init__(self) -> None:
        super().__init__()
        self._steps: dict[int, int] = {}
        self._dead: dict[int, SchedulerBuilt] = {}
        """Optimizer to the schedule that has held its learning rates at 0 since before its first step."""
        self._looks: dict[int, int] = {}
        """Optimizer to the number of sampled steps at which its learning rates were 0."""
        self._schedule_steps: dict[int, int] = {}

    def suspected(self) -> bool:
        return super().suspected() or any(0 < self._steps.get(number, 0) < _LEAST_STEPS for number in self._dead)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case SchedulerBuilt() if event.optimizer is not None:
                if event.at_zero and not self._steps.get(event.optimizer):
                    self._dead[event.optimizer] = event
                else:
                    self._dead.pop(event.optimizer, None)
            case SchedulerStepped(at_zero=False):
                built = run.schedulers.get(event.scheduler)
                self._dead.pop((built.optimizer if built is not None else None) or 0, None)
            case LearningRateRead() if event.zero:
                self._looks[event.optimizer] = self._looks.get(event.optimizer, 0) + 1
            case LearningRateRead():
                self._dead.pop(event.optimizer, None)
            case _:
                self.again(event, 1)

    def again(self, event: Event, times: int) -> None:
        match event:
            case OptimizerStepped():
                self._steps[event.optimizer] = self._steps.get(event.optimizer, 0) + times
            case SchedulerStepped(at_zero=True):
                self._schedule_steps[event.scheduler] = self._schedule_steps.get(event.scheduler, 0) + times

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how == "finished":
            self._scheduled(run)
            for number, steps in self._steps.items():
                self._passed(number, steps, run)
            if len(self._steps) == 1:
                self._late(next(iter(self._steps)), run)

    def _passed(self, number: int, steps: int, run: Progress) -> None:
        """Report an optimizer that got a learning rate of 0 from the script."""
        made, segments = run.optimizers.get(number), run.rates.segments.get(number, [])
        if made is None or made.lr > 0 or steps < _LEAST_STEPS or len(segments) != 1 or any(segments[0].rates):
            return
        others = (other for other in run.optimizers.values() if other.site == made.site)
        scheduled = any(schedule.optimizer == number for schedule in run.schedulers.values())
        if scheduled or made.kind not in _MOVES_BY_RATE or any(other.lr > 0 for other in others):
            return  # a schedule that multiplies a rate of 0 is built on purpose, to run a loop without moving anything
        name = run.optimizer_name(number)
        draft = self.report(
            made.site,
            f"`{name}` has a learning rate of 0: its steps changed nothing",
            run=run,
            label="built with a learning rate of 0",
            help=f"pass a learning rate above 0 to `{name}`",
            confidence=Confidence.HIGH if len(self._steps) == 1 else Confidence.MEDIUM,
            key=number,
        )
        draft.first_step, draft.count, draft.total = 0, steps, steps
        draft.cost = f"its {len(run.holds.get(number, ()))} parameters kept their values in {steps:,} steps"

    def _late(self, number: int, run: Progress) -> None:
        """Report a schedule that held the learning rate of the only optimizer at 0 for its first updates."""
        used = run.rates.used(number)
        built = next((one for one in run.schedulers.values() if one.optimizer == number), None)
        if built is None or len(used) < 2 or any(used[0].rates) or used[0].until + 1 < _LEAST_STEPS:
            return
        idle, name = used[0].until + 1, run.scheduler_name(built.scheduler)
        draft = self.report(
            built.site,
            f"`{name}` held the learning rate at 0 for the first {idle:,} updates",
            run=run,
            label="sets the learning rate to 0",
            help=f"call `{name}.step()` after every `{run.optimizer_name(number)}.step()`, or begin above 0",
            confidence=Confidence.MEDIUM,
            key=number,
        )
        draft.first_step, draft.count, draft.total = 0, idle, self._steps[number]
        draft.cost = f"these updates changed nothing: {idle / self._steps[number]:.0%} of the run or more"

    def _scheduled(self, run: Progress) -> None:
        """Report optimizers with a schedule that set their learning rates to 0."""
        if not self._steps or not set(self._steps) <= set(self._dead):
            return
        for number, steps in self._steps.items():
            built, optimizer = self._dead[number], run.optimizers.get(number)
            if steps < _LEAST_STEPS or optimizer is None or optimizer.lr <= 0 or not self._looks.get(number):
                continue
            name, moves = run.scheduler_name(built.scheduler), self._schedule_steps.get(built.scheduler, 0)
            draft = self.report(
                built.site,
                f"`{name}` held the learning rate at 0 for the whole run",
                run=run,
                label="sets the learning rate to 0",
                related=(Mark(optimizer.site, f"requests {optimizer.lr:g}"),) if optimizer.site else (),
                help=f"call `{name}.step()` after every `{run.optimizer_name(number)}.step()`"
                if not moves
                else f"give `{name}` factors above 0, or step it more often",
                key=number,
            )
            draft.first_step, draft.count, draft.total = 0, steps, steps
            looks = self._looks[number]
            draft.cost = f"the learning rate was 0 whenever it was read: {looks} times in {steps} optimizer steps"
