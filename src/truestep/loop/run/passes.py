"""What the passes of a run's loops go over: numbers of steps, and batches that are taken again after a resume."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.run.position import Walk


def numbers(walk: Walk, total: int) -> Iterator[int]:
    """Yield the number of the step under way, which moves on when a body has completed it."""
    while walk.finished < total:
        yield walk.finished


def early_again(walk: Walk, loader: Loader | GivenLoader, early: tuple[int, int], position: int) -> Iterator[Any]:
    """Give again what the body of the epoch took by hand before its loop; then go on where the run was."""
    first, last = early
    yield from islice(loader.epoch(walk.number, first), last - first)
    walk.finished = walk.given = position
    yield from loader.epoch(walk.number, position)


def length_of(loader: Loader | GivenLoader) -> int | None:
    """Return how many batches a pass has; None where that is not known."""
    try:
        return len(loader)
    except TypeError:
        return None
