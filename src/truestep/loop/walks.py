"""Where a run is: epochs, the loops inside one, their batches, and how a resumed run finds its way back.

A *walk* is one pass of a loop over a loader, or over a number of steps. The first walk under way is the one at whose
boundary things happen: steps are counted, checkpoints written, signals obeyed. A batch counts as finished when the
loop asks for the next one, since only then has its body ended; of zipped loops the first asks first, so at its
boundary the batches of the others have been used too.

A resumed program is run again from its first line. Loops that had ended give nothing, and what the run is told to log
and save is dropped, until the program comes to the place where the checkpoint was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from truestep.errors import BadCheckpoint

if TYPE_CHECKING:
    from truestep.loop.given import GivenLoader
    from truestep.loop.loader import Loader

Place = Literal["loop", "epochs", "save", "left"]
"""Where a checkpoint was made: at the boundary of a loop, between two epochs, by `run.save()` outside of all loops, or
when the run was closed after its loop over epochs had been left."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run is over, and how often it saves.

    Attributes:
        max_epochs: passes of `run.epochs()`; None for no limit.
        max_steps: steps; None for no limit.
        save_every_n_steps: a checkpoint after every so many steps; None for none of these.
    """

    max_epochs: int | None = None
    max_steps: int | None = None
    save_every_n_steps: int | None = None


@dataclass(eq=False, slots=True)
class Walk:
    """One pass over a loader.

    Attributes:
        name: the loader's name.
        number: how many passes over this loader were begun before: its order follows from it.
        finished: batches whose body has ended.
        given: batches handed out.
        resumed: whether it goes on with one that a stopped run had begun.
        is_place: whether it is the one at whose boundary the checkpoint was made.
        epoch: in whose body it was begun; -1 outside of `run.epochs()`.
        last: whether the batch under way is the last one.
        stream: the state of an iterable data set that keeps one, after the finished batches.
    """

    name: str
    number: int
    finished: int = 0
    given: int = 0
    resumed: bool = False
    is_place: bool = False
    epoch: int = -1
    last: bool = False
    stream: Any = None

    def place(self) -> dict[str, Any]:
        """Return where the loader goes on, as its `load_state_dict` takes it."""
        place = {"epoch": self.number, "position": self.finished}
        return place if self.stream is None else {**place, "dataset": self.stream}


@dataclass(eq=False, slots=True)
class _Plan:
    """What a resumed run still has to find again.

    Attributes:
        place: where the checkpoint was made; None once the program has come there.
        active: the walks that were under way, the first one first.
        finished: walks that had ended in this epoch, by name; forgotten when the first walk is found.
        before: walks that had ended outside of epochs, by name.
        saves: how many times `run.save()` had been called outside of all loops.
    """

    place: Place | None = None
    active: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    saves: int = 0


class Walks:
    """The position of a run.

    Example:
        >>> walks = Walks()
        >>> walk = walks.claim("train")
        >>> walks.is_first(walk)
        True
        >>> walk.given = walk.finished = 3
        >>> again = Walks()
        >>> again.load_state_dict(walks.state_dict("loop"))
        >>> found = again.claim("train")
        >>> found.finished, found.resumed
        (3, True)
    """

    def __init__(self) -> None:
        self.epoch = 0
        """Epochs that have ended."""
        self.in_epoch = False
        """Whether the body of `run.epochs()` is under way."""
        self.active: list[Walk] = []
        self._carried: list[Walk] = []
        self._passes: dict[str, int] = {}
        self._finished: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._saves = 0
        self._plan = _Plan()

    @property
    def is_resuming(self) -> bool:
        """Whether the program has not come yet to the place where the checkpoint was made."""
        return self._plan.place is not None

    def waits_for(self, place: Place) -> bool:
        """Whether the checkpoint was made at such a place, to which the program has not come yet."""
        return self._plan.place == place

    def claim(self, name: str) -> Walk | None:
        """Return the pass over the loader of that name which a loop is about to make; None for one that had ended.

        Loops claim when they are written down (`run.train(...)`) and begin at their first batch, so that of zipped
        loops each finds its own, also where the first has nothing left to give.

        Raises:
            BadCheckpoint: the run that was stopped had no such loop here.
        """
        plan = self._plan
        epoch = self.epoch if self.in_epoch else -1
        ended = plan.finished if self.in_epoch else plan.before
        if ended.get(name, 0):
            ended[name] -= 1
            return None
        for index, known in enumerate(plan.active):
            if known["name"] == name:
                del plan.active[index]
                finished, stream, is_place = known["finished"], known["stream"], known["is_place"]
                if is_place:
                    plan.finished.clear()
                return Walk(name, known["number"], finished, finished, True, is_place, epoch, stream=stream)
        if self.is_resuming:
            self.refuse(f'a loop over "{name}"')
        walk = Walk(name, self._passes.get(name, 0), epoch=epoch)
        self._passes[name] = walk.number + 1
        return walk

    def refuse(self, got: str) -> None:
        """Raise the error of a program that does not come to where the checkpoint was made.

        Args:
            got: where it came instead.
        """
        plan = self._plan
        where = "its end" if plan.place == "left" else "the call of run.save()"
        if plan.place == "loop":
            where = "the loop over " + ", ".join(f'"{walk["name"]}"' for walk in plan.active if walk["is_place"])
        raise BadCheckpoint(
            "the program does not come to the place where its checkpoint was made",
            expected=f"{where} in epoch {self.epoch}, got {got}",
            remedy='resume with the same loops, and with the same names: run.loader(..., name="...")',
        )

    def leave(self, walk: Walk) -> None:
        """End a pass: at its last batch, or because the loop was left."""
        for walks in (self.active, self._carried):
            if walk in walks:
                walks.remove(walk)
        if walk.epoch in (-1, self.epoch):  # one that was begun in an earlier epoch is not looked for in this one
            ended = self._before if walk.epoch == -1 else self._finished
            ended[walk.name] = ended.get(walk.name, 0) + 1

    def is_first(self, walk: Walk) -> bool:
        """Whether things happen at this walk's boundary; a walk that was not under way is from now on."""
        if walk not in self.active:
            self.active.append(walk)
        return self.active[0] is walk

    def count_save(self) -> bool:
        """Count a call of `run.save()` outside of all loops; return whether it is the one that was made here before."""
        self._saves += 1
        return self.waits_for("save") and self._saves == self._plan.saves

    def arrive(self) -> None:
        """Note that the program has come to where the checkpoint was made."""
        plan = self._plan
        plan.before.clear()
        self._saves = plan.saves
        plan.place = None

    def end_epoch(self) -> None:
        """Count an epoch. Passes that are still under way go on in the next one."""
        if self.is_resuming:
            self.refuse("the end of that epoch")
        self.epoch += 1
        self.in_epoch = False
        self._carried.extend(walk for walk in self.active if walk not in self._carried)
        self.active.clear()
        self._finished.clear()
        self._plan.finished.clear()

    def done(self, walk: Walk) -> int:
        """Return how many batches of a walk have been used, at the boundary of the first one."""
        return walk.finished if self.active and walk is self.active[0] else walk.given

    def _under_way(self) -> list[Walk]:
        return self.active + [walk for walk in self._carried if walk not in self.active]

    def note_streams(self, loaders: Mapping[str, Loader | GivenLoader]) -> None:
        """Ask the loaders of iterable data sets for the state that goes with where the walks are."""
        for walk in self._under_way():
            if walk.name in loaders:
                walk.stream = loaders[walk.name].state_dict(self.done(walk)).get("dataset")

    def state_dict(self, place: Place) -> dict[str, Any]:
        """Return where the run is.

        Args:
            place: where the program is.
        """
        return {
            "place": place,
            "epoch": self.epoch,
            "passes": dict(self._passes),
            "finished": dict(self._finished),
            "before": dict(self._before),
            "saves": self._saves,
            "active": [
                {
                    "name": walk.name,
                    "number": walk.number,
                    "finished": self.done(walk),
                    "stream": walk.stream,
                }
                for walk in self._under_way()
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where another run was."""
        self.epoch = state["epoch"]
        self._passes = dict(state["passes"])
        self._finished = dict(state["finished"])
        self._before = dict(state["before"])
        self._plan = _Plan(
            place=state["place"],
            active=[
                {**walk, "is_place": index == 0 and state["place"] == "loop"}
                for index, walk in enumerate(state["active"])
            ],
            finished=dict(state["finished"]),
            before=dict(state["before"]),
            saves=state["saves"],
        )
