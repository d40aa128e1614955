"""Updates of the averages of weights of a run.

An average is updated after the updates of the optimizers of its parameters. With several optimizers (one for matrices,
one for the rest), it is updated once per step: after the last of them, or at the end of the body.
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
        every: unit: applied updates, or ends of epochs.
        start: number of units to skip; until then the average equals the weights.
        seen: number of units so far.
        waiting: optimizers that updated since the last update of the average.
        owners: the optimizers with one of its parameters, and the numbers of groups when they were determined.
    """

    average: Average
    every: Literal["step", "epoch"] = "step"
    start: int = 0
    seen: int = 0
    waiting: set[int] = field(default_factory=set)
    owners: tuple[tuple[int, ...], frozenset[int]] = ((), frozenset())

    def update(self) -> None:
        """Count, and update the average."""
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
    """The averages of a run, by name."""

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
                followed.update()

    def settle(self) -> None:
        """Update averages for which only some of their optimizers have updated in the body that ended."""
        for followed in self.shelf.values():
            if followed.waiting:
                followed.update()

    def end_epoch(self) -> None:
        """Update averages that count epochs."""
        self.settle()
        for followed in self.shelf.values():
            if followed.every == "epoch":
                followed.update()


def _owners(followed: Followed, all_updates: Iterable[Updates]) -> frozenset[int]:
    """Return the ids of the updates of its optimizers, determined again when groups were added."""
    all_updates = list(all_updates)
    shape = tuple(len(updates.optimizer.param_groups) for updates in all_updates)
    if followed.owners[0] != shape:
        own = set(followed.average.parameters())
        holders = (id(updates) for updates in all_updates if not own.isdisjoint(updates.parameters()))
        followed.owners = (shape, frozenset(holders))
    return followed.owners[1]
