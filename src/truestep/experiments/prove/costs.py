"""Compare time and memory of two variants, for findings that cost time or memory and do not change the loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import quantiles

from truestep.experiments.figures.figure import Figure
from truestep.experiments.running.outcome import RunOutcome
from truestep.findings import Severity
from truestep.rules import rule as rule_of

_LEAST_TIME, _LEAST_MEMORY = 0.05, 0.01
"""Smallest relative difference that counts: in a few runs, the background load of the machine can differ as much."""
_LEAST_STEPS = 10


def are_of(rule: str) -> bool:
    """Return True if a rule is about time or memory."""
    kind = rule_of(rule)
    return kind.costs_resources or kind.severity is Severity.SPEED


def costs(rule: str, pairs: Sequence[tuple[RunOutcome, RunOutcome]]) -> list[Figure]:
    """Return step time and peak memory of both variants, if they are known for every seed.

    Args:
        rule: id of the rule that is examined.
        pairs: for each seed, the outcome without and with the remedy.
    """
    if not are_of(rule):
        return []
    between = rule_of(rule).cost_between_steps
    steps = [[_milliseconds(outcome, between=between) for outcome in pair] for pair in pairs]
    bytes_ = [[outcome.peak_bytes / 1e6 or None for outcome in pair] for pair in pairs]
    rows = (("ms per step", steps, _LEAST_TIME), ("peak memory in MB", bytes_, _LEAST_MEMORY))
    figures = []
    for name, values, least in rows:
        before, after = (tuple(known for pair in values if (known := pair[side]) is not None) for side in (0, 1))
        if len(before) == len(after) == len(pairs):
            figures.append(Figure(name, before, after, cost=True, least=least))
    return figures


def _milliseconds(outcome: RunOutcome, *, between: bool) -> float | None:
    """Return the milliseconds of a step, or None for too few steps.

    This is the lower quartile of the second half of the steps: memory has reached its size by then, and background
    load of the machine affects this quartile least. With `between`, it is the mean time from one step to the next.
    """
    times = [step.seconds for step in outcome.first]
    if len(times) < _LEAST_STEPS:
        return None
    if between:
        return 1000 * (times[-1] - times[0]) / (len(times) - 1)
    return 1000 * quantiles((after - before for before, after in pairwise(times[len(times) // 2 :])), n=4)[0]
