"""The remedy for workers that all read the same stream: drop repeated batches."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change


class OncePerStream(Change):
    """A batch of an `IterableDataset` is dropped if it equals the previous one, which another worker read.

    Workers take turns, so equal batches follow each other. Workers that split the stream, or draw their own random
    numbers, never yield equal batches. The remaining batches are those of a single worker.
    """

    name = "once-per-stream"
    remedies = ("iterable-repeated-by-workers",)

    def install(self, stack: ExitStack) -> None:
        from torch.utils.data import IterableDataset

        given: MutableMapping[Any, Any] = weakref.WeakKeyDictionary()

        def __next__(iterator: Any) -> Any:
            batch = next_of_torch(iterator)
            if not isinstance(iterator._dataset, IterableDataset) or iterator._num_workers < 2:
                return batch
            for _ in range(iterator._num_workers - 1):
                if iterator not in given or not _equal(batch, given[iterator]):
                    break
                self.applied += 1
                batch = next_of_torch(iterator)
            given[iterator] = _copied(batch)
            return batch

        next_of_torch = seams.loader.wrap_next(stack, __next__)


def _equal(one: Any, other: Any) -> bool:
    """Return True if two batches hold the same values; False if that is unknown."""
    import torch

    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, str | bytes | int | float) and bool(one == other)


def _copied(batch: Any) -> Any:
    """Return a copy of a batch, which in-place changes by the script do not affect."""
    import torch

    if isinstance(batch, torch.Tensor):
        return batch.clone()
    if isinstance(batch, dict):
        return type(batch)({key: _copied(value) for key, value in batch.items()})
    if type(batch) in (list, tuple):
        return type(batch)(map(_copied, batch))
    return batch
