from __future__ import annotations

from truestep.events import Event, FactorsFollowed, LearningRateRead, OptimizerStepped, RunEnded
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Progress, Rule

_EXACT = 1e-6
_LEAST_STEPS = 4
_LEAST_UPDATES = 20
_LEAST_VALUES = 3
"""Factors that show a course; fewer can be a phase with a lower rate."""
_OF_PLATEAU = 4
_MOST = 0.1
"""A base above it may be a share on purpose, and 1.0 is the base of functions that return rates."""
_COMPUTED = 0.015
"""A base above it with more digits may be the root of a width, as in schedules of transformers."""
_FALLEN = 0.999
_ROUNDED = 1.001


class LambdaReturnsRate(Rule):
    """The function of a LambdaLR returns learning rates instead of factors: the optimizer gets the square of its rate.

    What it does
    ------------
    Follows, in finished runs, the factors of each `LambdaLR`: the learning rate after each of its steps, divided by the
    rate that the optimizer was built with. Reports a largest factor that equals this rate to six digits, if it is below
    0.1, the factors follow a course, and the largest one was before a decay or kept for half of the steps.

    Why it matters
    --------------
    `LambdaLR` multiplies the rate of the optimizer by the result of the function. With a rate of 0.005 and a function
    that returns 0.005 at its peak, the optimizer gets 0.000025, and the model hardly changes. In the proof, 10 to 15 %
    of the digits are right instead of 95 to 96 %.

    Example
    -------
    ::

        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        schedule = LambdaLR(optimizer, lambda step: 5e-3 * min(1.0, (step + 1) / 100))

    Fix
    ---
    Return a factor, or let the optimizer begin with ``lr=1.0``::

        schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))

    Known false alarms
    ------------------
    A factor on purpose that begins with the same number as the rate, and falls. Not reported: functions with
    another peak than the rate of the optimizer, runs that end before the peak, schedules that go on from another
    position, as in a resumed run, optimizers with several schedules, and programs with another optimizer that does not
    show the same failure.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html
    """

    id = "lambda-returns-rate"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "rate"
    watches = (FactorsFollowed,)
    needs = (FactorsFollowed, LearningRateRead, OptimizerStepped, FINISHED)
    explains = ("loss-at-chance",)
    leads_to = ("loss-never-changes",)

    def __init__(self) -> None:
        super().__init__()
        self._followed: list[FactorsFollowed] = []

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, FactorsFollowed):
            self._followed.append(event)

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished":
            return
        found = [one for one in self._followed if _returns_rate(one) and _is_alone(one, run)]
        stepped = {number for number in run.optimizers if run.rates.updates(number)}
        if stepped != {one.optimizer for one in found}:
            return  # one with a rate as meant shows that a small factor may be on purpose
        for one in found:
            self._found(one, run)

    def _found(self, one: FactorsFollowed, run: Progress) -> None:
        name, optimizer = run.scheduler_name(one.scheduler), run.optimizers[one.optimizer]
        draft = self.report(
            one.site,
            f"the function of `{name}` returns a learning rate instead of a factor",
            run=run,
            label="multiplies the rate of the optimizer by it",
            related=(Mark(optimizer.site, f"requests {one.base:g}"),) if optimizer.site else (),
            cost=f"the largest learning rate was {one.base * one.largest:.3g} instead of {one.base:.3g}",
            help=f"divide the result by {one.base:g}, or build the optimizer with `lr=1.0`",
            key=one.site,
        )
        updates = run.rates.updates(one.optimizer)
        draft.first_step, draft.count, draft.total = 0, updates, updates


def _returns_rate(one: FactorsFollowed) -> bool:
    """Return True if the largest factor is the rate that it multiplies, at the start of a decay or on a plateau."""
    if one.steps < _LEAST_STEPS or one.values < _LEAST_VALUES or not 0 < one.base < _MOST:
        return False
    if abs(one.largest / one.base - 1) > _EXACT:
        return False
    if one.base > _COMPUTED and abs(float(f"{one.base:.2g}") / one.base - 1) > _EXACT:
        return False
    return one.last < _FALLEN * one.largest or (2 * one.since >= one.steps and one.values >= _OF_PLATEAU)


def _is_alone(one: FactorsFollowed, run: Progress) -> bool:
    """Return True if this schedule alone set the rates that the optimizer used."""
    schedules = [built for built in run.schedulers.values() if built.optimizer == one.optimizer]
    used = run.rates.used(one.optimizer)
    most = _ROUNDED * one.base * one.largest
    return (
        len(schedules) == 1
        and run.rates.updates(one.optimizer) >= _LEAST_UPDATES
        and bool(used)
        and all(max(segment.rates) <= most for segment in used)
    )
