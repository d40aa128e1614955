"""Where a run is: epochs, the loops inside one, their batches, and how a resumed run finds its way back.

A *walk* is one pass of a loop over a loader, or over a number of steps. The first walk under way is the one at whose
boundary things happen: steps are counted, checkpoints written, signals obeyed. A batch counts as finished when the
loop asks for the next one, since only then has its body ended; of zipped loops the first asks first, so at its
boundary the batches of the others have been used too.

A resumed program is run again from its first line. Loops that had ended give nothing, and what the run is told to log
and save is dropped, until the program comes to the place where the checkpoint was made.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from truestep.errors import BadCheckpoint, InexactResume
from truestep.loop.process.stacklevel import outside
from truestep.loop.run.habits import Habits

if TYPE_CHECKING:
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader

Place = Literal["loop", "epochs", "save", "left"]
"""Where a checkpoint was made: at the boundary of a loop, between two epochs, by `run.save()` outside of all loops, or
when the run was closed after its loop over epochs had been left."""


@dataclass(eq=False, slots=True)
class Walk:
    """One pass over a loader.

    Attributes:
        name: the loader's name.
        number: how many passes over this loader were begun before: its order follows from it.
        finished: batches whose body has ended.
        given: batches handed out.
        early: batches that the body of the epoch took before its loop: from which one, and up to which.
        resumed: whether it goes on with one that a stopped run had begun.
        is_place: whether it is the one at whose boundary the checkpoint was made.
        epoch: in whose body it was begun; -1 outside of `run.epochs()`.
        last: whether the batch under way is the last one.
        stream: the state of an iterable data set that keeps one, after the finished batches.
        begun: whether a batch was asked for.
        by_hand: whether that was by `next()`, and not by a `for`: then no loop ends where it ends.
        used_in: the latest epoch in which it was begun or asked for a batch; -1 outside of `run.epochs()`.
        is_over: whether it has ended or was left.
        iterator: what gives its batches, so that one that is dropped before its first batch is noticed.
    """

    name: str
    number: int
    finished: int = 0
    given: int = 0
    early: tuple[int, int] = (0, 0)
    resumed: bool = False
    is_place: bool = False
    epoch: int = -1
    last: bool = False
    stream: Any = None
    begun: bool = False
    by_hand: bool = False
    used_in: int = -1
    is_over: bool = False
    iterator: weakref.ref[Iterator[Any]] | None = None

    def place(self) -> dict[str, Any]:
        """Return where the loader goes on, as its `load_state_dict` takes it."""
        place = {"epoch": self.number, "position": self.finished}
        return place if self.stream is None else {**place, "dataset": self.stream}


@dataclass(eq=False, slots=True)
class _Plan:
    """What a resumed run still has to find again.

    Attributes:
        place: where the checkpoint was made; None once the program has come there.
        active: the walks that were under way and that no loop has claimed again, the first one first.
        finished: walks that had ended in this epoch, by name; forgotten when the first walk is found.
        before: walks that had ended outside of epochs, by name.
        saves: how many times `run.save()` had been called outside of all loops.
        passed: loaders of which the resumed program has seen the end of a pass that had ended.
    """

    place: Place | None = None
    active: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    saves: int = 0
    passed: set[str] = field(default_factory=set)


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
        """Walks that gave a batch in this epoch, the first one first."""
        self.habits = Habits()
        self._waiting: list[Walk] = []  # claimed, or of an earlier epoch, and without a batch in this one
        self._dropped: set[str] = set()  # loaders of which a pass of an earlier epoch ended without a batch in this one
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
            plan.passed.add(name)
            return None
        known = self._known(name)
        if known is not None:
            plan.active.remove(known)
            finished, stream, is_place = known["finished"], known["stream"], known["is_place"]
            if is_place:
                plan.finished.clear()
            epoch = known["epoch"]  # of a pass that is carried on, it stays the epoch in which it was begun
            walk = Walk(name, known["number"], finished, finished, resumed=True, is_place=is_place, epoch=epoch)
            walk.stream = stream
            walk.used_in, walk.early = known["used_in"], tuple(known["early"])
            walk.by_hand = known.get("by_hand", False)
        elif self.is_resuming:
            self.refuse(f'a loop over "{name}"')
        else:
            walk = Walk(name, self._passes.get(name, 0), epoch=epoch, used_in=epoch)
            self._passes[name] = walk.number + 1
            if any(other.name == name and self._is_carried(other) for other in self._waiting):
                self._dropped.add(name)
            self._note_dropped()
        self._waiting.append(walk)
        return walk

    def is_spent(self, walk: Walk, length: int | None) -> bool:
        """Return True if a resumed pass had given its last batch, and the program has seen the end of a pass already.

        A pass that `next()` goes over ends when a batch more is asked for. A program that then begins another one has
        come by that end in this process already, with the pass before; an empty one would come as a surprise to it.

        Args:
            walk: that was just claimed.
            length: its batches, where that is known.
        """
        ended = walk.resumed and walk.by_hand and not walk.is_place and walk.finished == length
        return ended and not self.is_resuming and walk.name in self._plan.passed

    def _known(self, name: str) -> dict[str, Any] | None:
        """Return the pass over a loader that a stopped run had under way and that a loop now goes on with, if any.

        A program that is run again makes the iterators of this epoch again, but not those of earlier epochs. One that
        was begun earlier goes on if the program did so in the run that was stopped; else it is dropped here.
        """
        plan = self._plan
        ours = [known for known in plan.active if known["name"] == name]
        if not ours:
            return None
        if not self.in_epoch:
            return next((known for known in ours if known["epoch"] == -1 or known["is_place"]), None)
        ours.sort(key=lambda known: (known["epoch"] != self.epoch, known["number"]))  # as they are claimed again
        certain = [known for known in ours if known["used_in"] == self.epoch or known["epoch"] == -1]
        if certain:
            return certain[0]
        goes_on = self.habits.goes_on(name, self.epoch)
        if goes_on is None:
            warnings.warn(
                f'a pass over "{name}" was under way when epoch {self.epoch - 1} ended, and the run was stopped before '
                "it was known whether the next epoch goes on with it: it does now; if the program makes this iterator "
                "in each epoch, close it at the end of the epoch, and else make it before run.epochs()",
                InexactResume,
                stacklevel=outside(),
            )
        if goes_on is not False:
            return ours[0]
        plan.active = [known for known in plan.active if known["name"] != name]
        return None

    def _note_dropped(self) -> None:
        """Note what was dropped, now that the program goes on: an exception drops iterators too."""
        while self._dropped:
            self.habits.note(self._dropped.pop(), self.epoch, goes_on=False)

    def _is_carried(self, walk: Walk) -> bool:
        """Return True if a pass was begun in an earlier epoch, and not used yet in the one under way."""
        return self.in_epoch and walk.epoch != -1 and walk.used_in != self.epoch

    @property
    def begun(self) -> set[str]:
        """The names of the loaders of which a pass was begun."""
        return set(self._passes)

    @property
    def ended(self) -> dict[str, int]:
        """How many loops have ended in this epoch, by name; in a resumed run, those that it has come by so far."""
        left = self._plan.finished if self.is_resuming else {}
        come_by = {name: count - left.get(name, 0) for name, count in self._finished.items()}
        return {name: count for name, count in come_by.items() if count}

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

    def follow(self, walk: Walk, iterator: Iterator[Any]) -> None:
        """Notice when an iterator is dropped before its first batch, since a generator then ends without a word."""

        def dropped(_: object) -> None:
            if not walk.begun:
                self.leave(walk)

        walk.iterator = weakref.ref(iterator, dropped)

    def leave(self, walk: Walk) -> None:
        """End a pass: at its last batch, or because the loop was left."""
        if walk.is_over:
            return
        walk.is_over = True
        if walk in self._waiting and self._is_carried(walk):
            self._dropped.add(walk.name)
        if walk in self._waiting:
            self._waiting.remove(walk)
        elif walk in self.active:
            was_first = self.first is walk
            self.active.remove(walk)
            if was_first:  # the others are beside the next loop, too, and not around it
                self._waiting, self.active = self.active + self._waiting, []
        if walk.epoch in (-1, self.epoch):  # one that was begun in an earlier epoch is not looked for in this one
            ended = self._before if walk.epoch == -1 else self._finished
            ended[walk.name] = ended.get(walk.name, 0) + 1

    @property
    def first(self) -> Walk | None:
        """The walk at whose boundary things happen: the first that a `for` goes over, or else the first."""
        return next((walk for walk in self.active if not walk.by_hand), self.active[0] if self.active else None)

    def is_first(self, walk: Walk, *, by_hand: bool = False) -> bool:
        """Return True if things happen at this walk's boundary; a walk that was not under way is from now on.

        Args:
            walk: the one that was asked for a batch.
            by_hand: whether it was by `next()`, and not by a `for`.
        """
        if self._dropped:
            self._note_dropped()
        if walk not in self.active:
            self.active.append(walk)
            self._waiting.remove(walk)
            if self._is_carried(walk) and (walk.begun or not walk.resumed):
                self.habits.note(walk.name, self.epoch, goes_on=True)
            walk.begun, walk.by_hand = True, by_hand
            walk.used_in = self.epoch if self.in_epoch else walk.used_in
            walk.early = (walk.finished, walk.finished)
            if not by_hand and self.first is walk:
                for other in self.active[:-1]:
                    other.early = (other.early[0], other.given)
        return self.first is walk

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
        self._note_dropped()
        self.epoch += 1
        self.in_epoch = False
        self._waiting = self.active + self._waiting
        self.active = []
        self._finished.clear()
        self._plan.finished.clear()

    def done(self, walk: Walk) -> int:
        """Return how many batches of a walk have been used, at the boundary of the first one."""
        return walk.finished if walk is self.first else walk.given

    def note_streams(self, loaders: Mapping[str, Loader | GivenLoader]) -> None:
        """Ask the loaders of iterable data sets for the state that goes with where the walks are."""
        for walk in (*self.active, *self._waiting):
            if walk.name in loaders:
                walk.stream = loaders[walk.name].state_dict(self.done(walk), walk.number).get("dataset")

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
                    "epoch": walk.epoch,
                    "used_in": walk.used_in,
                    "early": list(walk.early),
                    "by_hand": walk.by_hand,
                    "is_place": place == "loop" and walk is self.first,
                }
                for walk in (*self.active, *self._waiting)
            ]
            + self._plan.active,
            "habits": self.habits.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where another run was."""
        self.epoch = state["epoch"]
        self._passes = dict(state["passes"])
        self._finished = dict(state["finished"])
        self._before = dict(state["before"])
        self.habits.load_state_dict(state["habits"])
        self._plan = _Plan(
            place=state["place"],
            active=[dict(walk) for walk in state["active"]],
            finished=dict(state["finished"]),
            before=dict(state["before"]),
            saves=state["saves"],
        )
