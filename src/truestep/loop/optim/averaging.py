"""Averages of weights that a run keeps: when each of them takes the weights in.

An average follows the updates of the optimizers that hold its parameters. Where there are several (one for matrices,
one for the rest), it takes the weights in once per step: when the last has updated, or at the end of the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from truestep.loop.optim.updates import Updates
    from truestep.model.average import Average


@dataclass(eq=False, slots=True)
class Followed:
    """One average of a run.

    Attributes:
        average: the average of the weights.
        every: what to count: updates that were applied, or ends of epochs.
        start: number of these that are left out; until then the average equals the weights.
        seen: number of these so far.
        waiting: optimizers that updated since the weights were taken in.
        owners: the optimizers that hold one of its parameters, as the run's groups were when they were looked at.
    """

    average: Average
    every: Literal["step", "epoch"] = "step"
    start: int = 0
    seen: int = 0
    waiting: set[int] = field(default_factory=set)
    owners: tuple[tuple[int, ...], frozenset[int]] = ((), frozenset())

    def take(self) -> None:
        """Count, and take the weights in."""
        self.waiting.clear()
        self.seen += 1
        if self.seen > self.start:
            self.average.update()
        else:
            self.average.restart()

    def state_dict(self) -> dict[str, Any]:
        """Return the counts; the weights are saved separately."""
        return {"updates": self.average.updates, "seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the counts of a stopped run."""
        self.average.updates = state["updates"]
        self.seen = state["seen"]
        self.waiting.clear()


class Averaging:
    """The averages of a run, by name.

    Args:
        updates: of the optimizers of the run, by name.
    """

    def __init__(self, updates: Mapping[str, Updates]) -> None:
        self._updates = updates
        self.shelf: dict[str, Followed] = {}

    def applied(self, updates: Updates) -> None:
        """Update the averages after an optimizer step."""
        for followed in self.shelf.values():
            if followed.every == "epoch":
                continue
            owners = _owners(followed, self._updates.values())
            one = id(updates)
            if one not in owners:
                continue
            again = one in followed.waiting
            followed.waiting.add(one)
            if again or len(followed.waiting) == len(owners):
                followed.take()

    def settle(self) -> None:
        """Take in the weights that only some of a model's optimizers have updated in the body that ended."""
        for followed in self.shelf.values():
            if followed.waiting:
                followed.take()

    def end_epoch(self) -> None:
        """Take in the weights for averages that count epochs."""
        self.settle()
        for followed in self.shelf.values():
            if followed.every == "epoch":
                followed.take()


def _owners(followed: Followed, all_updates: Iterable[Updates]) -> frozenset[int]:
    """Return which optimizers hold parameters of an average, looked up again when groups were added."""
    all_updates = list(all_updates)
    shape = tuple(len(updates.optimizer.param_groups) for updates in all_updates)
    if followed.owners[0] != shape:
        own = set(followed.average.parameters())
        holders = (id(updates) for updates in all_updates if not own.isdisjoint(updates.parameters()))
        followed.owners = (shape, frozenset(holders))
    return followed.owners[1]
