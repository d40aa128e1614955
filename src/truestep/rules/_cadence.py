"""Mismatches between a schedule and the run that steps it: too many steps, too few, or a bad learning rate."""

from __future__ import annotations

from dataclasses import dataclass

from truestep.events import SchedulerBuilt
from truestep.findings import Confidence
from truestep.rules._pace import RunCounts, ScheduleCounts
from truestep.rules._rule import Progress

_DEAD = 1e-6
"""A learning rate below this fraction of its first value has no effect any more."""
_BEGUN = 0.2
"""A schedule that made less than this fraction of its steps has barely begun."""
_LEAST_ALONE = 50
"""Scheduler steps with a negligible rate that suffice where passes over the data are unknown."""
_FALLEN = 0.5
"""A schedule as long as the run ends below this fraction of its largest learning rate."""
_TO_THE_END = ("CosineAnnealingLR", "OneCycleLR", "PolynomialLR", "SequentialLR", "LinearLR")
"""Schedules designed to be run to their end."""
_PASSED = 3
"""A schedule of epochs that is stepped for every batch makes at least so many times its steps."""
_LONG = 150
"""Fewer steps can be a number of epochs, of which a run that stopped early made a part."""
_LEAST_EPOCHS = 3
"""Scheduler steps of a run without a loader, of which a horizon is a whole multiple."""
_EPOCHS = (100, 500)
"""A horizon below the batches of a pass counts epochs: surely up to the first value, probably up to the second."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A mismatch between a schedule and its run, as the parts of a finding."""

    confidence: Confidence
    message: str
    cost: str
    help: str


def too_far(
    built: SchedulerBuilt, pace: ScheduleCounts, counts: RunCounts, run: Progress, *, ended: bool
) -> Misfit | None:
    """Return how a schedule was stepped past its length; None if it was not, or if that does no harm."""
    if built.gamma is not None and built.horizon is None:
        return _died(built, pace, counts, run, ended=ended)
    horizon = built.horizon or 0
    if horizon < 1 or pace.steps <= horizon:
        return None
    often = counts.often(pace, run)
    fits_epochs = often and ended and abs(counts.passes - horizon) <= max(1, counts.passes // 10)
    when = "once per epoch, after the loop over batches" if often or built.of_epochs else f"{horizon} times"
    help = f"call `{built.name}.step()` {when}"
    if built.kind == "PolynomialLR" and pace.steps >= max(horizon + 2, 1.2 * horizon):
        cost = f"the last {pace.steps - horizon} of {pace.steps} scheduler steps left the lr at 0"
        return Misfit(Confidence.HIGH, "the schedule ended long before the training, and the lr is 0", cost, help)
    if built.of_epochs and ended and pace.steps >= max(_PASSED * horizon, 0.9 * counts.updates.get(built.optimizer, 0)):
        cost = f"{pace.steps} scheduler steps were made through a length of {horizon}, which counts epochs by its name"
        return Misfit(Confidence.HIGH, "a schedule made for epochs was stepped for every batch", cost, help)
    within_pass = often and horizon < counts.batches(run)
    if built.falls and often and ended and pace.steps >= 10 * horizon and _is_of_epochs(built, counts):
        cost = f"after {horizon} of {pace.steps} scheduler steps the lr stayed as it was, in {counts.passes} epochs"
        sure = Confidence.HIGH if within_pass else Confidence.MEDIUM
        return Misfit(sure, "a schedule made for epochs was stepped for every batch", cost, help)
    if built.kind == "MultiStepLR" and fits_epochs and within_pass and pace.steps >= 20 * horizon:
        cost = f"all milestones up to {horizon} were passed within the first of {counts.passes} epochs"
        return Misfit(Confidence.HIGH, "a schedule made for epochs was stepped for every batch", cost, help)
    wave = built.tail_horizon or horizon
    if "CosineAnnealingLR" not in (built.kind, built.tail) or pace.steps < 2 * horizon:
        return None
    confidence = Confidence.LOW
    if fits_epochs or (within_pass and horizon <= _EPOCHS[0]):
        confidence = Confidence.HIGH
    else:
        on_purpose = counts.once(pace) or _whole_passes(horizon, counts, run)
        if (within_pass and horizon <= _EPOCHS[1]) or (pace.steps >= 20 * horizon and not on_purpose):
            confidence = Confidence.MEDIUM
    rises = (pace.steps - (horizon - wave) - 1 + wave) // (2 * wave)
    cost = f"in {pace.steps} steps through a schedule of {horizon}, the lr began to rise {rises} times"
    return Misfit(confidence, "the schedule ran past its end, and the lr rises again", cost, help)


def _is_of_epochs(built: SchedulerBuilt, counts: RunCounts) -> bool:
    """Return True if the schedule, counted in epochs, ends late in the run but within it."""
    least = 0.3 if built.kind == "MultiStepLR" else 0.8
    return counts.passes >= 3 and least * counts.passes <= (built.horizon or 0) <= 1.1 * counts.passes


def run_down(built: SchedulerBuilt, pace: ScheduleCounts, counts: RunCounts, run: Progress) -> Misfit | None:
    """Return a misfit if the learning rate was negative, or negligible for half of the training; else None."""
    if pace.negative >= 3:
        cost = f"{pace.negative} of {pace.steps} scheduler steps left the lr below 0"
        help = f"let the factor of `{built.name}` end at 0, or call `{built.name}.step()` less often"
        return Misfit(Confidence.HIGH, "the schedule made the lr negative, so that steps increase the loss", cost, help)
    often = counts.often(pace, run)
    each = pace.steps >= 0.9 * counts.updates.get(built.optimizer, 0)
    least = 20 if often else _LEAST_ALONE
    if pace.vanished < max(least, pace.steps - pace.vanished) or not (often or (each and not counts.passes)):
        return None
    cost = f"the latest {pace.vanished} of {pace.steps} scheduler steps left less than a millionth of the first lr"
    help = f"call `{built.name}.step()` once per epoch, or make `{built.name}` as long as the training"
    message = "the schedule ended long before the training, and the lr has vanished"
    return Misfit(Confidence.HIGH if often else Confidence.MEDIUM, message, cost, help)


def still_warming(built: SchedulerBuilt, pace: ScheduleCounts, counts: RunCounts, run: Progress) -> Misfit | None:
    """Return a misfit if a finished run with one scheduler step per epoch never left the first tenth of a warm-up."""
    updates, batches = counts.updates.get(built.optimizer, 0), counts.batches(run)
    if pace.warming < max(3, pace.steps) or not counts.once(pace) or batches < 5:
        return None
    cost = f"in {pace.steps} scheduler steps and {updates} optimizer steps the lr never exceeded a tenth of the first"
    help = f"call `{built.name}.step()` after every `{run.optimizer_name(built.optimizer)}.step()`"
    return Misfit(Confidence.MEDIUM, "the run ended when the warm-up had barely begun", cost, help)


def _whole_passes(horizon: int, counts: RunCounts, run: Progress) -> bool:
    """Return True if a horizon, counted in batches, is a whole number of passes over the data."""
    batches = counts.batches(run)
    return batches > 1 and horizon % batches == 0


def _died(
    built: SchedulerBuilt, pace: ScheduleCounts, counts: RunCounts, run: Progress, *, ended: bool
) -> Misfit | None:
    """Return a misfit for a decay by a factor, which has no end, if it made the learning rate negligible."""
    gamma = built.gamma or 0.0
    factor = gamma ** (pace.steps // (built.step_size or 1))
    if not 0 < gamma < 1 or factor > _DEAD or not counts.often(pace, run):
        return None
    pace.died_at_once |= counts.passes == 1
    if not pace.died_at_once and not (ended and factor < _DEAD**1.5):
        return None
    cost = f"{pace.steps} scheduler steps have multiplied the lr by {factor:.0e}"
    message = "a decaying schedule was stepped for every batch, and the lr has all but vanished"
    help = f"call `{built.name}.step()` once per epoch, after the loop over batches"
    return Misfit(Confidence.HIGH if pace.died_at_once else Confidence.MEDIUM, message, cost, help)


def barely_begun(built: SchedulerBuilt, pace: ScheduleCounts, counts: RunCounts, run: Progress) -> Misfit | None:
    """Return a misfit if a finished run went through too little of its schedule; None if it was enough."""
    horizon = built.horizon or 0
    late = built.kind == "MultiStepLR" or built.step_size is not None
    horizon = horizon or built.step_size or 0
    to_the_end = built.kind in _TO_THE_END or built.tail == "CosineAnnealingLR"
    if built.kind == "LambdaLR":
        return _counts_updates(built, pace, counts, run)
    if not (to_the_end or late) or not 0 < pace.steps < _BEGUN * horizon:
        return None
    updates, batches = counts.updates.get(built.optimizer, 0), counts.batches(run)
    confidence = Confidence.LOW  # a run that stopped early leaves a schedule unfinished too
    help = f"set the length of `{built.name}` to the number of its steps"
    if counts.once(pace) and batches > 1:
        help = f"call `{built.name}.step()` after every `{run.optimizer_name(built.optimizer)}.step()`"
        whole = _whole_passes(horizon, counts, run)
        warms = built.kind == "LinearLR" and not built.falls
        if abs(updates - horizon) <= (0 if whole else counts.passes) and not late:
            confidence = Confidence.HIGH
        elif batches >= 10 and whole and horizon > _EPOCHS[0 if warms and horizon <= updates else 1]:
            confidence = Confidence.MEDIUM
    elif built.kind in _TO_THE_END and pace.steps <= updates // 5 and _is_in_updates(horizon, updates, pace.steps):
        confidence = Confidence.HIGH  # as long as the run in updates
        help = f"call `{built.name}.step()` after every `{run.optimizer_name(built.optimizer)}.step()`"
    elif updates < counts.drawn and abs(counts.drawn - horizon) <= counts.passes:
        confidence = Confidence.MEDIUM  # designed for batches, but stepped once per accumulation window
    cost = f"{pace.steps} of {horizon} scheduler steps were made in {updates} optimizer steps"
    return Misfit(confidence, "the run ended when the schedule had barely begun", cost, help)


def _is_in_updates(horizon: int, updates: int, steps: int) -> bool:
    """Return True if a horizon is that of a run in updates, with or without the last, smaller batch of each epoch."""
    of_batches = steps >= _LEAST_EPOCHS and horizon % steps == 0 and horizon > _LONG
    return (of_batches and horizon <= updates <= horizon + steps) or abs(updates - horizon) <= updates // 20


def _counts_updates(built: SchedulerBuilt, pace: ScheduleCounts, counts: RunCounts, run: Progress) -> Misfit | None:
    """Return a misfit if a function of the number of updates got the number of a few passes, and never fell."""
    updates, optimizer = counts.updates.get(built.optimizer, 0), built.optimizer or 0
    used, margin = run.rates.used(optimizer), updates // 20
    *others, horizon = built.counts or (0,)
    converted = any(abs(other * pace.steps - updates) <= margin for other in others)
    if not used or converted or not 3 <= pace.steps <= updates // 5 or abs(updates - horizon) > margin:
        return None
    last = min(max(used[-1].rates), max(run.rates.segments[optimizer][-1].rates))
    if last < _FALLEN * max(max(segment.rates) for segment in used):
        return None
    name = f"`{built.name}.step()`"
    return Misfit(
        Confidence.MEDIUM,
        "the run ended when the schedule had barely begun",
        f"its function counts to {horizon}, the number of updates, and got {pace.steps} in {updates} optimizer steps",
        f"call {name} after every `{run.optimizer_name(built.optimizer)}.step()`",
    )
