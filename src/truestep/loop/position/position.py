"""The position of a run: its epoch, the passes of its loops, their batches, and the way back to it after a resume.

The first pass under way is the leading one: at its boundaries steps are counted, checkpoints written and signals
handled. A batch is finished when the loop requests the next one, because only then has its body ended. Of zipped loops
the first one requests first, so the batches of the others have been used at its boundary, too.

A resumed program runs again from its first line. Until it reaches the place where the checkpoint was made, completed
loops yield nothing, and its calls of `run.log()` and `run.save()` have no effect.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from truestep.errors import BadCheckpoint, InexactResume
from truestep.loop.position.carried_passes import CarriedPasses
from truestep.loop.position.passes import LoopPass
from truestep.loop.process.stacklevel import outside

if TYPE_CHECKING:
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader

Place = Literal["loop", "epochs", "save", "left"]
"""Place where a checkpoint was made: at the boundary of a loop, between two epochs, by `run.save()` outside of loops,
or when the run was closed after its loop over epochs had been left."""


@dataclass(eq=False, slots=True)
class _Restored:
    """The part of a restored position that a resumed program has not reached yet.

    Attributes:
        place: kind of the place where the checkpoint was made; None once the program has reached it.
        active: passes under way that no loop has claimed again, the first one first.
        finished: number of ended passes of this epoch, by name; cleared when the leading pass is found.
        before: number of ended passes outside of epochs, by name.
        saves: number of calls of `run.save()` outside of all loops.
        passed: loaders with a completed pass that the resumed program has gone past.
    """

    place: Place | None = None
    active: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    saves: int = 0
    passed: set[str] = field(default_factory=set)


class Position:
    """The position of a run.

    Example:
        >>> position = Position()
        >>> current = position.claim("train")
        >>> position.is_first(current)
        True
        >>> current.given = current.finished = 3
        >>> again = Position()
        >>> again.load_state_dict(position.state_dict("loop"))
        >>> found = again.claim("train")
        >>> found.finished, found.resumed
        (3, True)
    """

    def __init__(self) -> None:
        self.epoch = 0
        """Number of completed epochs."""
        self.in_epoch = False
        """True in the body of `run.epochs()`."""
        self.is_resuming = False
        """True until the program has reached the place where the checkpoint was made."""
        self.active: list[LoopPass] = []
        """Passes that yielded a batch in this epoch, the first one first."""
        self.first: LoopPass | None = None
        """The leading pass: the first one that a `for` iterates over, or else the first one. Every step reads it."""
        self.carried = CarriedPasses()
        self._waiting: list[LoopPass] = []  # claimed, or of an earlier epoch, without a batch in this epoch
        self._dropped: set[str] = set()  # loaders with an earlier pass that ended without a batch in this epoch
        self._passes: dict[str, int] = {}
        self._finished: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._saves = 0
        self._restored = _Restored()

    def waits_for(self, place: Place) -> bool:
        """Return True if the checkpoint was made at such a place and the program has not reached it yet."""
        return self._restored.place == place

    def claim(self, name: str) -> LoopPass | None:
        """Return the pass of a loop over the loader with this name; None if it was completed before the resume.

        Loops claim in the call of `run.train(...)` and begin at their first batch, so that each of several zipped loops
        finds its pass even if the first one has no batch left.

        Raises:
            BadCheckpoint: the stopped run had no such loop here.
        """
        restored = self._restored
        epoch = self.epoch if self.in_epoch else -1
        ended = restored.finished if self.in_epoch else restored.before
        if ended.get(name, 0):
            ended[name] -= 1
            restored.passed.add(name)
            return None
        known = self._known(name)
        if known is not None:
            restored.active.remove(known)
            finished, stream, is_place = known["finished"], known["stream"], known["is_place"]
            if is_place:
                restored.finished.clear()
            epoch = known["epoch"]  # stays the epoch in which the pass was begun
            current = LoopPass(name, known["number"], finished, finished, resumed=True, is_place=is_place, epoch=epoch)
            current.stream = stream
            current.used_in, current.early = known["used_in"], tuple(known["early"])
            current.by_hand = known.get("by_hand", False)
        elif self.is_resuming:
            self.refuse(f'a loop over "{name}"')
        else:
            current = LoopPass(name, self._passes.get(name, 0), epoch=epoch, used_in=epoch)
            self._passes[name] = current.number + 1
            if any(other.name == name and self._is_carried(other) for other in self._waiting):
                self._dropped.add(name)
            self._note_dropped()
        self._waiting.append(current)
        return current

    def is_spent(self, current: LoopPass, length: int | None) -> bool:
        """Return True if a resumed pass had yielded its last batch and the program has already gone past its end.

        A pass over which `next()` iterates ends at the request after its last batch. A program that then begins another
        pass has already handled that end in this process, with the previous pass, and does not expect an empty one.

        Args:
            current: the pass, just claimed.
            length: number of its batches; None if unknown.
        """
        ended = current.resumed and current.by_hand and not current.is_place and current.finished == length
        return ended and not self.is_resuming and current.name in self._restored.passed

    def _known(self, name: str) -> dict[str, Any] | None:
        """Return the pass of the stopped run that a loop over this loader continues; None if there is none.

        A resumed program makes the iterators of this epoch again, but not those of earlier epochs. A pass of an earlier
        epoch continues if the stopped program continued such passes; otherwise it is dropped here.
        """
        restored = self._restored
        ours = [known for known in restored.active if known["name"] == name]
        if not ours:
            return None
        if not self.in_epoch:
            return next((known for known in ours if known["epoch"] == -1 or known["is_place"]), None)
        ours.sort(key=lambda known: (known["epoch"] != self.epoch, known["number"]))  # in the order of the claims
        certain = [known for known in ours if known["used_in"] == self.epoch or known["epoch"] == -1]
        if certain:
            return certain[0]
        goes_on = self.carried.goes_on(name, self.epoch)
        if goes_on is None:
            warnings.warn(
                f'a pass over "{name}" was under way when epoch {self.epoch - 1} ended, and the run was stopped before '
                "it was known if the next epoch continues it: it does now; if the program creates this iterator "
                "in each epoch, close it at the end of the epoch, or else create it before run.epochs()",
                InexactResume,
                stacklevel=outside(),
            )
        if goes_on is not False:
            return ours[0]
        restored.active = [known for known in restored.active if known["name"] != name]
        return None

    def _note_dropped(self) -> None:
        """Record the dropped passes now that the program continues: an exception drops iterators, too."""
        while self._dropped:
            self.carried.note(self._dropped.pop(), self.epoch, goes_on=False)

    def _is_carried(self, current: LoopPass) -> bool:
        """Return True if a pass was begun in an earlier epoch and not used in the current one yet."""
        return self.in_epoch and current.epoch != -1 and current.used_in != self.epoch

    @property
    def begun(self) -> set[str]:
        """Names of the loaders with at least one pass."""
        return set(self._passes)

    @property
    def ended(self) -> dict[str, int]:
        """Number of ended loops in this epoch, by name; in a resumed run, only those that it has gone past."""
        left = self._restored.finished if self.is_resuming else {}
        come_by = {name: count - left.get(name, 0) for name, count in self._finished.items()}
        return {name: count for name, count in come_by.items() if count}

    def refuse(self, got: str) -> None:
        """Raise the error of a program that does not reach the place where its checkpoint was made."""
        restored = self._restored
        where = "its end" if restored.place == "left" else "the call of run.save()"
        if restored.place == "loop":
            where = "the loop over " + ", ".join(f'"{known["name"]}"' for known in restored.active if known["is_place"])
        raise BadCheckpoint(
            "the program does not come to the place where its checkpoint was made",
            expected=f"{where} in epoch {self.epoch}, got {got}",
            remedy='resume with the same loops, and with the same names: run.loader(..., name="...")',
        )

    def follow(self, current: LoopPass, iterator: Iterator[Any]) -> None:
        """End a pass with an iterator that is dropped before its first batch: such a generator runs no `finally`."""

        def dropped(_: object) -> None:
            if not current.begun:
                self.leave(current)

        current.iterator = weakref.ref(iterator, dropped)

    def leave(self, current: LoopPass) -> None:
        """End a pass: at its last batch, or because the loop was left."""
        if current.is_over:
            return
        current.is_over = True
        if current in self._waiting and self._is_carried(current):
            self._dropped.add(current.name)
        if current in self._waiting:
            self._waiting.remove(current)
        elif current in self.active:
            was_first = self.first is current
            self.active.remove(current)
            if was_first:  # the other passes run beside the next loop, too, and not around it
                self._waiting, self.active = self.active + self._waiting, []
            self._lead()
        if current.epoch in (-1, self.epoch):  # a resumed run does not claim passes of earlier epochs here
            ended = self._before if current.epoch == -1 else self._finished
            ended[current.name] = ended.get(current.name, 0) + 1

    def _lead(self) -> None:
        by_loop = (current for current in self.active if not current.by_hand)
        self.first = next(by_loop, self.active[0] if self.active else None)

    def is_first(self, current: LoopPass, *, by_hand: bool = False) -> bool:
        """Return True if this is the leading pass; a pass that was not under way is under way from now on.

        Args:
            current: the pass with a request for a batch.
            by_hand: True if `next()` requested it instead of a `for`.
        """
        if self._dropped:
            self._note_dropped()
        if current not in self.active:
            self.active.append(current)
            self._waiting.remove(current)
            if self._is_carried(current) and (current.begun or not current.resumed):
                self.carried.note(current.name, self.epoch, goes_on=True)
            current.begun, current.by_hand = True, by_hand
            self._lead()
            current.used_in = self.epoch if self.in_epoch else current.used_in
            current.early = (current.finished, current.finished)
            if not by_hand and self.first is current:
                for other in self.active[:-1]:
                    other.early = (other.early[0], other.given)
        return self.first is current

    def count_save(self) -> bool:
        """Count a call of `run.save()` outside of all loops; return True if it made the checkpoint of the resume."""
        self._saves += 1
        return self.waits_for("save") and self._saves == self._restored.saves

    def arrive(self) -> None:
        """Note that the program has reached the place where the checkpoint was made."""
        restored = self._restored
        restored.before.clear()
        self._saves = restored.saves
        restored.place = None
        self.is_resuming = False

    def end_epoch(self) -> None:
        """Count an epoch. Passes under way continue in the next one."""
        if self.is_resuming:
            self.refuse("the end of that epoch")
        self._note_dropped()
        self.epoch += 1
        self.in_epoch = False
        self._waiting = self.active + self._waiting
        self.active, self.first = [], None
        self._finished.clear()
        self._restored.finished.clear()

    def done(self, current: LoopPass) -> int:
        """Return the number of used batches of a pass, at the boundary of the leading one."""
        return current.finished if current is self.first else current.given

    def note_streams(self, loaders: Mapping[str, Loader | GivenLoader]) -> None:
        """Record the states of iterable data sets that belong to the positions of the passes."""
        for current in (*self.active, *self._waiting):
            if current.name in loaders:
                current.stream = loaders[current.name].state_dict(self.done(current), current.number).get("dataset")

    def state_dict(self, place: Place) -> dict[str, Any]:
        """Return the position, for a checkpoint."""
        return {
            "place": place,
            "epoch": self.epoch,
            "passes": dict(self._passes),
            "finished": dict(self._finished),
            "before": dict(self._before),
            "saves": self._saves,
            "active": [
                {
                    "name": current.name,
                    "number": current.number,
                    "finished": self.done(current),
                    "stream": current.stream,
                    "epoch": current.epoch,
                    "used_in": current.used_in,
                    "early": list(current.early),
                    "by_hand": current.by_hand,
                    "is_place": place == "loop" and current is self.first,
                }
                for current in (*self.active, *self._waiting)
            ]
            + self._restored.active,
            "habits": self.carried.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the position of a stopped run."""
        self.epoch = state["epoch"]
        self._passes = dict(state["passes"])
        self._finished = dict(state["finished"])
        self._before = dict(state["before"])
        self.carried.load_state_dict(state["habits"])
        self._restored = _Restored(
            place=state["place"],
            active=[dict(current) for current in state["active"]],
            finished=dict(state["finished"]),
            before=dict(state["before"]),
            saves=state["saves"],
        )
        self.is_resuming = True
