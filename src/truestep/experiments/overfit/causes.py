"""Reasons why a loop does not learn its first batches, as far as its runs show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from truestep.experiments.running.outcome import RunOutcome

_MOST_FROZEN = 0.5
"""Largest frozen fraction of a model that is not reported: training a head on a frozen body is usual."""
_LOWER, _HIGHER = (1e-2, 1e-4), (1e2, 1e4, 1e6)
"""Factors of the learning rate to try, in this order."""
_STILL = 0.01
"""Change of the loss, relative to the first loss, that counts as none."""


def shown(outcome: RunOutcome, batches: int) -> list[str]:
    """Return the causes that the run on the first batches shows."""
    learning: Mapping[str, Any] = outcome.results.get("learning", {})
    counts = outcome.changes.get("first-batches", {})
    found = []
    rates = learning.get("rates")
    if rates is not None and rates[1] == 0:
        found.append("the learning rate is 0 in every step: no weight changes")
    elif rates is not None and rates[0] == 0:
        found.append("the learning rate is 0 in some of the steps")
    values, trained, frozen = (learning.get(name, 0) for name in ("values", "trained_values", "frozen_values"))
    if values and trained < values and frozen > _MOST_FROZEN * values:
        names = ", ".join(learning["trained"]) + (" and others" if len(learning["trained"]) > 2 else "")
        what = f"{trained:,} of {values:,} values of the model are trained" + (f" ({names})" if names else "")
        found.append(f"{what}: the others have requires_grad=False")
    elif values and trained == 0:
        found.append(f"the optimizer does not hold the model: 0 of its {values:,} values are in a parameter group")
    if learning.get("targets", 0) > batches and counts.get("applied") and not counts.get("by_hand"):
        same = "the same batch" if batches == 1 else "the same batches"
        found.append(
            f"the targets change although {same} repeat{'s' * (batches == 1)} ({learning['targets']} different "
            "targets): the loop draws, shuffles or augments them itself"
        )
    return found


def rate(outcome: RunOutcome, losses: Sequence[float], learns: Callable[[float], bool]) -> list[str]:
    """Return the learning rate as the cause if the same batches are learned with another one; else []."""
    rates = outcome.results.get("learning", {}).get("rates")
    if not rates or rates[1] <= 0:
        return []
    factors, words = (_LOWER, "too high") if has_moved(losses) else (_HIGHER, "too low")
    factor = next((factor for factor in factors if learns(factor)), None)
    if factor is None:
        return []
    return [f"the learning rate of {rates[1]:.3g} is {words}: {rates[1] * factor:.3g} learns the same batches"]


def has_moved(losses: Sequence[float]) -> bool:
    """Return True if the losses move by more than 1 % of the first one, or are not finite."""
    first = abs(losses[0])
    return not max(abs(loss - losses[0]) for loss in losses) <= _STILL * first
