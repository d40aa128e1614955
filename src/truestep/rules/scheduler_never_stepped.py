from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, LoaderStarted, OptimizerStepped, RunEnded, SchedulerBuilt
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import schedules
from truestep.syntax import Program, Suspicion

_LEAST_UPDATES = 20
"""Fewer steps of the optimizer may be a part of the first epoch."""
_STARTS_LATE = ("SWALR",)


class SchedulerNeverStepped(Rule):
    """A schedule is built and never stepped: the learning rate keeps its first value.

    What it does
    ------------
    Reports schedules without any ``step()`` in a finished run, where their optimizer made 20 or more steps in two or
    more passes over the training data, with the learning rates that it had at first.

    Why it matters
    --------------
    The run looks as configured, but its learning rate never falls, or stays at the start of a warm-up. In the proof,
    the weights keep moving with the noise of each batch: the error on held-out samples is 0.61 instead of 0.32.

    Example
    -------
    ::

        schedule = CosineAnnealingLR(optimizer, T_max=epochs)
        for epoch in range(epochs):
            train(model, loader, optimizer)         # schedule.step() is missing

    Fix
    ---
    Step the schedule in the unit that it counts::

        for epoch in range(epochs):
            train(model, loader, optimizer)
            schedule.step()

    Known false alarms
    ------------------
    A ``step()`` under a condition that was never true, if it is in another file; in the same file it has low
    confidence, as has a run of one pass. Not reported: an optimizer with another schedule that is stepped, learning
    rates that the script sets itself, ``SWALR``, which starts late, and runs that did not finish.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    id = "scheduler-never-stepped"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    missing_call = "step"
    watches = (BackwardEnded, LoaderStarted, OptimizerStepped, SchedulerBuilt)
    needs = (SchedulerBuilt, OptimizerStepped, FINISHED)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return schedules.scheduler_never_stepped(program)

    def __init__(self) -> None:
        super().__init__()
        self._loader: int | None = None
        self._passes: dict[int, int] = {}

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, BackwardEnded):
            self._loader = event.loader
        else:
            self.again(event, 1)

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, LoaderStarted):
            self._passes[event.loader] = self._passes.get(event.loader, 0) + times

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished":
            return
        counts = run.rates.scheduled()
        moved = {
            run.schedulers[number].optimizer for number, steps in counts.items() if steps and number in run.schedulers
        }
        latest = {built.optimizer: built for built in run.schedulers.values()}
        for optimizer, built in latest.items():
            if optimizer is not None and optimizer not in moved and built.kind not in _STARTS_LATE:
                self._judge(optimizer, built, run)

    def _judge(self, optimizer: int, built: SchedulerBuilt, run: Progress) -> None:
        updates, segments = run.rates.updates(optimizer), run.rates.segments.get(optimizer, [])
        passes = self._passes.get(self._loader or 0, 0)
        if updates < _LEAST_UPDATES or len(segments) != 1 or not any(segments[0].rates):
            return  # `learning-rate-dead` is about rates of 0
        once = self._loader is not None and passes < 2
        sure = Confidence.MEDIUM if self._loader is None else Confidence.HIGH
        made = run.optimizers.get(optimizer)
        rates = " and ".join(f"{rate:g}" for rate in dict.fromkeys(segments[0].rates))
        draft = self.report(
            built.site,
            f"`{built.name}` was never stepped, and the learning rate kept its first value",
            run=run,
            label=f"builds {built.kind}",
            related=(Mark(made.site, "its optimizer"),) if made is not None and made.site else (),
            help=f"call `{built.name}.step()` in the loop, in the unit that its length counts",
            confidence=Confidence.LOW if once or built.called else sure,
            key=built.scheduler,
        )
        draft.first_step, draft.count, draft.total = 0, updates, updates
        draft.cost = f"the learning rate was {rates} in all {updates:,} steps"
