"""Where a run is: epochs, the loops inside one, their batches, and how a resumed run finds its way back.

A *walk* is one pass of a loop over a loader, or over a number of steps. The first walk under way is the one at whose
boundary things happen: steps are counted, checkpoints written, signals obeyed. A batch counts as finished when the
loop asks for the next one, since only then has its body ended; of zipped loops the first asks first, so at its
boundary the batches of the others have been used too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truestep.loop.loader import Loader


@dataclass(eq=False, slots=True)
class Walk:
    """One pass over a loader.

    Attributes:
        name: the loader's name.
        number: how many passes over this loader were begun before: its order follows from it.
        finished: batches whose body has ended.
        given: batches handed out.
        resumed: the batch to begin with, after a restart.
        last: whether the batch under way is the last one.
        stream: the state of an iterable data set that keeps one, after the finished batches.
    """

    name: str
    number: int
    finished: int = 0
    given: int = 0
    resumed: bool = False
    last: bool = False
    stream: Any = None

    def place(self) -> dict[str, Any]:
        """Return where the loader goes on, as its `load_state_dict` takes it."""
        place = {"epoch": self.number, "position": self.finished}
        return place if self.stream is None else {**place, "dataset": self.stream}


@dataclass(eq=False, slots=True)
class _Plan:
    """What a resumed run still has to find again in the epoch it stopped in.

    Attributes:
        active: the walks that were under way, the first one first.
        finished: walks that had ended in this epoch, by name; forgotten when the first walk is found.
        waiting: whether the first walk is still to be found.
    """

    active: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=dict)
    waiting: bool = False


class Walks:
    """The position of a run.

    Example:
        >>> walks = Walks()
        >>> walk = walks.claim("train")
        >>> walks.is_first(walk)
        True
        >>> walk.given = walk.finished = 3
        >>> again = Walks()
        >>> again.load_state_dict(walks.state_dict())
        >>> found = again.claim("train")
        >>> found.finished, found.resumed
        (3, True)
    """

    def __init__(self) -> None:
        self.epoch = 0
        """Epochs that have ended."""
        self.active: list[Walk] = []
        self._passes: dict[str, int] = {}
        self._finished: dict[str, int] = {}
        self._plan = _Plan()

    @property
    def is_resuming(self) -> bool:
        """Whether the loop that the run stopped in is still to be found again."""
        return self._plan.waiting

    def claim(self, name: str) -> Walk | None:
        """Return the pass over the loader of that name which a loop is about to make; None for one that had ended.

        Loops claim when they are written down (`run.train(...)`) and begin at their first batch, so that of zipped
        loops each finds its own, also where the first has nothing left to give.
        """
        plan = self._plan
        if plan.finished.get(name, 0):
            plan.finished[name] -= 1
            return None
        for index, known in enumerate(plan.active):
            if known["name"] == name:
                del plan.active[index]
                if plan.waiting and index == 0:
                    plan.waiting = False
                    plan.finished.clear()
                return Walk(name, known["number"], known["finished"], known["finished"], True, stream=known["stream"])
        walk = Walk(name, self._passes.get(name, 0))
        self._passes[name] = walk.number + 1
        return walk

    def leave(self, walk: Walk) -> None:
        """End a pass: at its last batch, or because the loop was left."""
        if walk in self.active:
            self.active.remove(walk)
        self._finished[walk.name] = self._finished.get(walk.name, 0) + 1

    def is_first(self, walk: Walk) -> bool:
        """Whether things happen at this walk's boundary; a walk that was not under way is from now on."""
        if walk not in self.active:
            self.active.append(walk)
        return self.active[0] is walk

    def end_epoch(self) -> None:
        """Count an epoch. Passes that are still under way go on in the next one."""
        self.epoch += 1
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Forget the loops of the epoch before."""
        self.active.clear()
        self._finished.clear()

    def done(self, walk: Walk) -> int:
        """Return how many batches of a walk have been used, at the boundary of the first one."""
        return walk.finished if walk is self.active[0] else walk.given

    def note_streams(self, loaders: Mapping[str, Loader]) -> None:
        """Ask the loaders of iterable data sets for the state that goes with where the walks are."""
        for walk in self.active:
            if walk.name in loaders:
                walk.stream = loaders[walk.name].state_dict(self.done(walk)).get("dataset")

    def state_dict(self) -> dict[str, Any]:
        """Return where the run is, at the boundary of the first walk under way or between two epochs."""
        return {
            "epoch": self.epoch,
            "passes": dict(self._passes),
            "finished": dict(self._finished),
            "active": [
                {
                    "name": walk.name,
                    "number": walk.number,
                    "finished": self.done(walk),
                    "stream": walk.stream,
                }
                for walk in self.active
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where another run was."""
        self.epoch = state["epoch"]
        self._passes = dict(state["passes"])
        self._finished = dict(state["finished"])
        active = [dict(walk) for walk in state["active"]]
        self._plan = _Plan(active, dict(state["finished"]), waiting=bool(active))
