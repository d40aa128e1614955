from __future__ import annotations

from collections.abc import Iterator

from truestep.accounts import Segment
from truestep.events import Event, LearningRateRead, OptimizerBuilt, OptimizerStepped, RateComputed, RunEnded, Site
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Draft, Progress, Rule
from truestep.rules._syntax.steps import schedules
from truestep.syntax import Program, Suspicion

_LEAST_UPDATES = 10
_GONE = 1e-6
"""A learning rate below this fraction of its largest value has no effect any more."""
_PEAK = 0.9
_LEAST_RISES = 5
_WARM = 0.3
"""Share of the rate that an optimizer is built with, below which a warm-up has not come far."""
_LEAST_WARMED = 50
"""Updates before which a run that ends in its warm-up is a short trial of the program."""
_LEAST_TURNED = 200
_LEAST_AT_ZERO = 10
"""Updates of the first step of a course, with a rate of 0; a test of rates changes them with every update."""
_STRAIGHT = 0.05
"""Most distance of a rate from a straight line over the run, as a share of the rate of the optimizer."""
_LEAST_VALUES = 3
"""Values of a rate that show a course, and no single change on purpose."""
_MOST_VALUES = 32


_NEAR = 2.0
"""A computed rate is that of an optimizer if its course reaches the optimizer's own rate, up to this factor."""


class LearningRateOffCourse(Rule):
    """The learning rate that a script computes is not set, or becomes negative, vanishes early, or misses a group.

    What it does
    ------------
    Reads the learning rates of each optimizer at sampled steps, whoever sets them, and judges finished runs. Reports

    - a rate below 0 at a step;
    - rates that fell below a millionth of their largest value in the first half of the updates, and stayed there;
    - rates that rose in proportion to the updates for the whole run, and ended far below the rate of the optimizer;
    - rates of 0 that rose in steps to the rate of the optimizer at the very end: a decay that is turned round;
    - groups that keep the largest rate of the others, while the script sets these along a course;
    - an optimizer that keeps its rate while the script computes another one for each step, which only its log gets, or
      an attribute that torch never reads, such as ``optimizer.lr``.

    The syntax shows a rate that the loop computes and prints, or writes to such an attribute, in a file that sets none.

    Why it matters
    --------------
    With a negative rate each step increases the loss; with a vanished one it changes nothing. In the proof a decay that
    was meant for epochs is applied for each step: 34 % of held-out points are right instead of 83 %. A group without
    its warm-up or decay goes on with the rate that the others only have at their peak. A decay that is turned round
    ends at the largest rate: on digits, with Adam and a rate of 0.05, 0.83 to 0.97 are right instead of 0.97 to 0.98.

    Example
    -------
    ::

        for step in range(5000):
            for group in optimizer.param_groups:
                group["lr"] = 5e-3 * 0.1**step          # meant was 0.1 ** (step / 2500)

    Fix
    ---
    Divide by the length of the decay, in updates, and set the rate in every group::

            for group in optimizer.param_groups:
                group["lr"] = 5e-3 * 0.1 ** (step / 2500)

    Known false alarms
    ------------------
    One of several groups that keeps its rate on purpose, if it is the peak of the others' course. Not reported: rates
    of exactly 0 at once or while another optimizer steps (parts that wait or are turned off), groups with schedules of
    torch, computed rates that anything but a log reads, rates that are
    collected to choose one, warm-ups of fewer than 50 updates (a trial of the program),
    and runs that were interrupted.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    id = "learning-rate-off-course"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (LearningRateRead, RateComputed)
    needs = (LearningRateRead, OptimizerStepped, FINISHED)
    explains = ("loss-at-chance",)
    leads_to = ("loss-never-changes", "nan-or-inf")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return schedules.rate_never_set(program)

    def __init__(self) -> None:
        super().__init__()
        self._computed: dict[tuple[int, str], tuple[Site | None, list[float]]] = {}
        """Optimizer and name to the line and the values of a computed rate that the optimizer does not get."""

    def observe(self, event: Event, run: Progress) -> None:
        """Keep the computed rates; the account has those of the optimizers, which are judged at the end."""
        if isinstance(event, RateComputed):
            values = self._computed.setdefault((event.optimizer, event.name), (event.site, []))[1]
            if event.rate not in values and len(values) < _MOST_VALUES:
                values.append(event.rate)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for number in run.rates.segments if event.how == "finished" else ():
            used, updates = run.rates.used(number), run.rates.updates(number)
            if len(used) > 1 and updates >= _LEAST_UPDATES:
                self._judge(number, used, updates, run)
            elif used and updates >= _LEAST_UPDATES:
                self._judge_constant(number, used[0].rates, updates, run)

    def _judge_constant(self, number: int, rates: tuple[float, ...], updates: int, run: Progress) -> None:
        """Report an optimizer that keeps its rates beside a computed one."""
        scheduled = any(one.optimizer == number for one in run.schedulers.values())
        if scheduled or any(len(run.rates.used(other)) > 1 for other in run.rates.segments):
            return  # the computed rate may be that of another optimizer
        for (optimizer, name), (site, values) in self._computed.items():
            near = any(min(values) / _NEAR <= rate <= _NEAR * max(values) for rate in rates)
            if optimizer != number or len(values) < _LEAST_VALUES or not near:
                continue
            message = f"the computed learning rate `{name}` never reaches `{run.optimizer_name(number)}`"
            help = 'assign it: `for group in optimizer.param_groups: group["lr"] = rate`'
            draft = self._found(number, message, help, run, site, "computed here")
            draft.confidence, draft.count, draft.total = Confidence.MEDIUM, updates, updates
            course = f"`{name}` ran between {min(values):.3g} and {max(values):.3g}"
            draft.cost = f"the optimizer kept {rates[0]:.3g} in all {updates:,} updates, while {course}"
            return

    def _judge(self, number: int, used: list[Segment], updates: int, run: Progress) -> None:
        name = run.optimizer_name(number)
        below = [segment for segment in used if min(segment.rates) < 0]
        alone = sum(run.rates.updates(other) > 0 for other in run.optimizers) == 1
        late = _vanished(used, updates, alone=alone)
        if below:
            message = f"the learning rate of `{name}` became negative: its steps increase the loss"
            draft = self._found(number, message, "end the decay at 0, when the run ends", run)
            draft.first_step = below[0].update
            draft.cost = f"{min(below[0].rates):.3g} at update {below[0].update:,} of {updates:,}"
        elif late is not None:
            message = f"the learning rate of `{name}` had vanished long before the end of the run"
            help = "let the rate fall over the whole run, in the unit that its formula counts"
            draft = self._found(number, message, help, run)
            draft.cost = (
                f"{max(late.rates):.3g} from update {late.update:,} of {updates:,} on, {used[0].rates[0]:.3g} at first"
            )
        elif (share := _warming(used, updates, run.rates.segments[number][-1], run.optimizers.get(number))) is not None:
            message = f"the run ended in the warm-up of the learning rate of `{name}`"
            draft = self._found(number, message, "make the warm-up shorter than the run, in updates", run)
            draft.confidence = Confidence.MEDIUM
            draft.cost = (
                f"{max(used[-1].rates):.3g} at update {used[-1].until:,} of {updates:,}, {share:.2g} of its rate"
            )
        elif _is_turned(used, updates, run.rates.segments[number][-1], run.optimizers.get(number)) and not (
            (site := run.rates.written.get(number)) is not None and schedules.tries_rates(site.path)
        ):
            message = f"the learning rate of `{name}` rose from 0 to its full value over the whole run"
            draft = self._found(number, message, "let it fall: turn the factor round", run)
            draft.confidence = Confidence.MEDIUM
            draft.cost = f"0 for the first updates, {max(run.rates.segments[number][-1].rates):.3g} after {updates:,}"
        elif not any(one.optimizer == number for one in run.schedulers.values()) and (still := _still(used)):
            message = f"the learning rate of {len(still)} of {len(used[0].rates)} groups of `{name}` was never changed"
            draft = self._found(number, message, "set the rate in all of `optimizer.param_groups`", run)
            others = [rate for place, rate in enumerate(used[-1].rates) if place not in still]
            draft.confidence = Confidence.MEDIUM
            draft.cost = (
                f"they kept {used[0].rates[still[0]]:.3g}, the peak of the others, which ended with {others[0]:.3g}"
            )

    def _found(
        self,
        number: int,
        message: str,
        help: str,
        run: Progress,
        site: Site | None = None,
        label: str = "sets the learning rate",
    ) -> Draft:
        built, written = run.optimizers.get(number), site or run.rates.written.get(number)
        return self.report(
            written or (built.site if built is not None else None),
            message,
            run=run,
            label=label if written else "built here",
            help=help,
            key=number,
        )


def _vanished(used: list[Segment], updates: int, *, alone: bool) -> Segment | None:
    """Return the first of the segments with negligible rates at the end, if they are half of the run; else None."""
    largest = max(max(segment.rates) for segment in used)
    falls = alone and len({segment.rates for segment in used if max(segment.rates) > 0}) >= _LEAST_VALUES
    late = None
    for segment in reversed(used):
        if max(segment.rates) >= _GONE * largest or not (falls or max(segment.rates) > 0):
            break
        late = segment
    return late if late is not None and updates - late.update >= max(_LEAST_UPDATES, updates / 2) else None


def _warming(used: list[Segment], updates: int, last: Segment, built: OptimizerBuilt | None) -> float | None:
    """Return the last rate as a share of that of the optimizer if all were proportional to the updates; else None."""
    if built is None or built.lr <= 0 or len(used) < _LEAST_RISES or last.rates < used[-1].rates:
        return None
    if updates < _LEAST_WARMED:
        return None
    if any(segment.until > segment.update for segment in used):
        return None
    rates = [max(segment.rates) for segment in used]
    slopes = [
        (after - before) / (late.update - early.update)
        for before, after, early, late in zip(rates, rates[1:], used, used[1:], strict=False)
        if late.update > early.update
    ]
    if last.update > used[-1].update:  # it was read at the end
        slopes.append((max(last.rates) - rates[-1]) / (last.update - used[-1].update))
    share = max(rates[-1], *last.rates) / built.lr
    even = min(slopes) > 0.9 * max(slopes) > 0 and rates[0] < 3 * slopes[0]
    return share if even and share < _WARM else None


def _is_turned(used: list[Segment], updates: int, last: Segment, built: OptimizerBuilt | None) -> bool:
    """Return True for rates that rise in steps along a line, from 0 to the rate of the optimizer at the end."""
    if built is None or built.lr <= 0 or len(used) <= _LEAST_VALUES or updates < _LEAST_TURNED:
        return False
    if max(used[0].rates) != 0 or used[0].until < _LEAST_AT_ZERO:
        return False
    even = all(abs(max(one.rates) / built.lr - one.update / updates) <= _STRAIGHT for one in used)
    return even and _PEAK <= max(last.rates) / built.lr <= 1


def _still(used: list[Segment]) -> list[int]:
    """Return the groups that kept the largest rate of the others, if these followed a course; else none."""
    if len({len(segment.rates) for segment in used}) > 1:
        return []
    values = [{segment.rates[place] for segment in used} for place in range(len(used[0].rates))]
    still = [place for place, found in enumerate(values) if len(found) == 1]
    moved = [found for found in values if len(found) >= _LEAST_VALUES]
    if not moved or len(still) + len(moved) < len(values):
        return []
    peak = max(map(max, moved))
    return still if all(_PEAK * used[0].rates[place] <= peak <= used[0].rates[place] for place in still) else []
