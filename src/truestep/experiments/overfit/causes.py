"""Why a loop does not learn its first batches, where its own runs show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from truestep.experiments.running.outcome import Outcome

_MOST_FROZEN = 0.5
"""Part of a model's values that may be frozen before it is told: heads are trained on frozen bodies."""
_LOWER, _HIGHER = (1e-2, 1e-4), (1e2, 1e4, 1e6)
"""Factors of the learning rate that are tried, one after another."""
_STILL = 0.01
"""Part of the first loss by which a loss moves that does not move."""


def shown(outcome: Outcome, batches: int) -> list[str]:
    """Return what the run on the first batches shows by itself.

    Args:
        outcome: of the run.
        batches: that were repeated.
    """
    told: Mapping[str, Any] = outcome.told.get("learning", {})
    counts = outcome.changes.get("first-batches", {})
    found = []
    rates = told.get("rates")
    if rates is not None and rates[1] == 0:
        found.append("the learning rate is 0 in every step: no weight moves")
    elif rates is not None and rates[0] == 0:
        found.append("the learning rate is 0 in some of the steps")
    values, trained, frozen = (told.get(name, 0) for name in ("values", "trained_values", "frozen_values"))
    if values and trained < values and frozen > _MOST_FROZEN * values:
        names = ", ".join(told["trained"]) + (" and others" if len(told["trained"]) > 2 else "")
        what = f"{trained:,} of {values:,} values of the model are trained" + (f" ({names})" if names else "")
        found.append(f"{what}: the others have requires_grad=False")
    elif values and trained == 0:
        found.append(f"the optimizer holds none of the {values:,} values of the model that is called")
    if told.get("targets", 0) > batches and counts.get("applied") and not counts.get("by_hand"):
        same = "the same batch" if batches == 1 else "the same batches"
        found.append(
            f"the targets change while {same} come{'s' * (batches == 1)} again, {told['targets']} of them: the loop "
            "draws, shuffles or augments them by itself"
        )
    return found


def rate(outcome: Outcome, losses: Sequence[float], learns: Callable[[float], bool]) -> list[str]:
    """Return that the learning rate is the cause, where another one learns the same batches.

    Args:
        outcome: of the run.
        losses: of its steps.
        learns: runs the script with its rates times a factor, and says whether it learns.
    """
    rates = outcome.told.get("learning", {}).get("rates")
    if not rates or rates[1] <= 0:
        return []
    factors, words = (_LOWER, "too high") if has_moved(losses) else (_HIGHER, "too low")
    factor = next((factor for factor in factors if learns(factor)), None)
    if factor is None:
        return []
    return [f"the learning rate of {rates[1]:.3g} is {words}: with {rates[1] * factor:.3g} the same batches are learnt"]


def has_moved(losses: Sequence[float]) -> bool:
    """Whether losses differ by more than a hundredth of the first one, or are not finite."""
    first = abs(losses[0])
    return not max(abs(loss - losses[0]) for loss in losses) <= _STILL * first
