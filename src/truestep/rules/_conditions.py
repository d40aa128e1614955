"""Conditions that a run must meet to show a failure: a rule without them is not observed, never clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from truestep.rules._rule import Progress

_NAMES = {
    "cross_entropy": "cross entropy",
    "binary_cross_entropy_with_logits": "binary cross entropy with logits",
    "nll_loss": "NLL loss",
    "kl_div": "KL divergence",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that cannot be expressed as a kind of event."""

    costly: ClassVar[bool] = False
    absent: str
    """Reason for "not observed", such as "no training on batches of a DataLoader"."""
    holds: Callable[[Progress], bool]


def steps(least: int) -> Condition:
    """Return the condition of so many optimizer steps."""
    return Condition(f"fewer than {least} optimizer steps", lambda run: run.step >= least)


def loss_of(*kinds: str, named: str = "") -> Condition:
    """Return the condition of a loss of one of these kinds, computed with gradients."""
    name = named or " or ".join(_NAMES[kind] for kind in kinds)
    return Condition(f"no {name} with gradients", lambda run: any(kind in kinds for kind, *_ in run.losses.tally))


def _trained_on_loader(run: Progress) -> bool:
    return bool(run.samples.trained)


FINISHED = Condition("the script did not run to its end", lambda run: run.how == "finished")
ENDED = Condition("the script did not run to its end", lambda run: run.how in ("finished", "exited"))
TRAINED_ON_LOADER = Condition("no training on batches of a DataLoader", _trained_on_loader)
