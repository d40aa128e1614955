"""One pass of a loop over a loader or over step numbers, and the batches of a pass."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader


@dataclass(eq=False, slots=True)
class LoopPass:
    """One pass over a loader.

    Attributes:
        name: the loader's name; "steps" for a loop over step numbers.
        number: number of earlier passes over this loader; determines the order of the samples.
        finished: number of batches with a completed body.
        given: number of batches handed out.
        early: range (first, end) of the batches that the body of the epoch read with `next()` before its loop.
        resumed: True if it continues a pass of the stopped run.
        is_place: True if the checkpoint was made at the boundary of this pass.
        epoch: the epoch in which it was begun; -1 outside of `run.epochs()`.
        last: True if the current batch is the last one.
        stream: state of an iterable data set after the finished batches, if the data set has one.
        begun: True if a batch was requested.
        by_hand: True if `next()` requested the batch instead of a `for`: the end of this pass ends no loop.
        used_in: the latest epoch in which it was begun or a batch was requested; -1 outside of `run.epochs()`.
        is_over: True if it has ended or was left.
        iterator: weak reference to the iterator over its batches, to notice one that is dropped before its first batch.
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

    def loader_state(self) -> dict[str, Any]:
        """Return the state with which the loader continues, for its `load_state_dict`."""
        place = {"epoch": self.number, "position": self.finished}
        return place if self.stream is None else {**place, "dataset": self.stream}


def numbers(current: LoopPass, total: int) -> Iterator[int]:
    """Yield the number of the current step, which increases when a body has completed the step."""
    while current.finished < total:
        yield current.finished


def early_again(
    current: LoopPass, loader: Loader | GivenLoader, early: tuple[int, int], position: int
) -> Iterator[Any]:
    """Yield again the batches that the body of the epoch reads before its loop; then continue at `position`."""
    first, last = early
    yield from islice(loader.epoch(current.number, first), last - first)
    current.finished = current.given = position
    yield from loader.epoch(current.number, position)


def length_of(loader: Loader | GivenLoader) -> int | None:
    """Return the number of batches of a pass; None if unknown."""
    try:
        return len(loader)
    except TypeError:
        return None
