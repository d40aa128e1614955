"""Reader of iterable data sets: split over workers and ranks, seeded item by item, resumed at any batch.

Batch k of an epoch is items kG ... kG + G - 1 of the stream, where G is the size of the global batch. With W workers,
worker k mod W reads it: it draws all items and keeps those of its batches. So batches are the same with any number of
workers. A data set that splits itself (its code calls `get_worker_info`) is not split again: then batch k is the next
one of worker k mod W.
"""

from __future__ import annotations

import copy
import enum
import importlib
import itertools
import sys
import time
import types
import warnings
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.utils.data import IterableDataset, get_worker_info

from truestep.errors import SamplesReadAgain
from truestep.loop.loading.batching import Batching
from truestep.loop.loading.dataset_probe import light_copy
from truestep.loop.loading.feed import Assembly, Feed, Workers
from truestep.loop.loading.map_style import pass_epoch, place
from truestep.loop.process.stacklevel import outside
from truestep.loop.rng.seed import borrowed, mix


class NoBatch(enum.Enum):
    """Answer of a worker instead of a batch."""

    ENDED = enum.auto()
    PASSED_OVER = enum.auto()


class BatchRequest(NamedTuple):
    """Request for one batch of a stream."""

    turn: int
    epoch: int
    position: int
    wanted: bool


class IterableBatches:
    """Draws batches from an iterable data set, in this process or in a worker.

    Before each item is drawn, python's, numpy's and torch's global generators are seeded with `mix(seed, epoch,
    number)`, with the number of the item in the stream; for a data set that splits itself, the worker and the rank are
    mixed in too.

    Args:
        dataset: the data set; its `set_epoch`, if any, is called with the epoch.
        batching: assignment of items to batches.
        assembly: collation and transform.
        splits_workers: True if the data set gives each worker another part.
        splits_ranks: True if the data set gives each rank another part.
        device: device of another generator to seed, if items are read in this process.
    """

    def __init__(
        self,
        dataset: Any,
        batching: Batching,
        assembly: Assembly,
        *,
        splits_workers: bool,
        splits_ranks: bool,
        device: torch.device | None = None,
    ) -> None:
        self.dataset = dataset
        self._batching = batching
        self._assembly = assembly
        self._splits_workers = splits_workers
        self._splits_ranks = splits_ranks
        self._device = device
        self._read: Any = dataset
        self._items: Iterator[Any] = iter(())
        self._turn = -1
        self._next = 0
        """Number of the next item in the stream."""
        self._ended = False

    @property
    def size(self) -> int:
        """Number of items drawn for a batch."""
        return self._batching.batch_size if self._splits_ranks else self._batching.global_size

    def begin(self, turn: int, epoch: int, state: Any = None, number: int = 0) -> None:
        """Start an epoch; with the data set's state at item `number`, start there."""
        self._read = self.dataset
        if state is not None:
            apart = light_copy(self.dataset)  # other readers of the data set must still start at its beginning
            self._read = self.dataset if apart is None else apart
        pass_epoch(self._read, epoch)
        if state is not None:
            self._read.load_state_dict(copy.deepcopy(state))
        self._items = iter(self._read)
        self._turn, self._next, self._ended = turn, number, False

    def state(self) -> Any:
        """Return the data set's state after the last item drawn."""
        return copy.deepcopy(self._read.state_dict())

    def __getitems__(self, request: BatchRequest) -> Any:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info is not None and self._splits_workers else (0, 1)
        base, epoch = self._batching.seed, request.epoch
        lane = [1 + worker] if self._splits_workers else []
        if self._splits_ranks:
            lane.append(self._batching.rank)
        first = request.position // workers * self.size
        with borrowed(self._device if info is None else None, restore=info is None) as seed:
            if request.turn != self._turn:
                seed(mix(base, epoch, *lane))
                self.begin(request.turn, epoch)
            whole = []
            while self._next < first + self.size and not self._ended:
                seed(mix(base, epoch, self._next, *lane))
                try:
                    item = next(self._items)
                except StopIteration:
                    self._ended = True
                    break
                except Exception as error:
                    error.add_note(place(f"item {self._next}", epoch))
                    raise
                if self._next >= first:
                    whole.append(item)
                self._next += 1
            kept = self._kept(whole)
            if not kept:
                return NoBatch.ENDED
            if not request.wanted:
                return NoBatch.PASSED_OVER
            seed(self._batching.batch_seed(epoch, request.position))
            return self._assembly.batch(kept)

    def _kept(self, whole: list[Any]) -> list[Any]:
        """Return this rank's part of the items drawn; [] if the epoch is over."""
        if not whole or (self._batching.drop_last and len(whole) < self.size):
            return []
        return whole if self._splits_ranks else self._batching.share(whole)


class StreamReader:
    """Reads an iterable data set from any batch of any epoch.

    If the data set has `state_dict` and `load_state_dict` and is read in this process, its states at the last batches
    are kept, and a resume starts there. Otherwise the stream is read again up to the batch, with the warning
    `SamplesReadAgain`.
    """

    kept_states = 3
    """Number of batches with a kept state: a loop that prefetches has drawn one more than it has finished."""

    def __init__(
        self, dataset: Any, batching: Batching, assembly: Assembly, workers: Workers, device: torch.device
    ) -> None:
        splits_ranks = batching.world_size > 1 and _splits_ranks(dataset)
        if batching.world_size > 1 and not splits_ranks and _is_hugging_face(dataset):
            distributed = importlib.import_module("datasets.distributed")
            dataset = distributed.split_dataset_by_node(dataset, batching.rank, batching.world_size)
            splits_ranks = True
        splits_workers = refers_to(dataset, "get_worker_info")
        self._stream = IterableBatches(
            dataset, batching, assembly, splits_workers=splits_workers, splits_ranks=splits_ranks, device=device
        )
        self._lanes = workers.num_workers if splits_workers and workers.num_workers else 1
        self._batching = batching
        self._feed = Feed(self._stream, workers, batching.seed, batching.name, one_at_a_time=True)
        self._turn = 0
        self._states: deque[tuple[int, int, Any]] = deque(maxlen=self.kept_states)
        self.keeps_its_place = not workers.num_workers and _keeps_its_place(dataset)

    def __len__(self) -> int:
        return self._batching.batches(len(self._stream.dataset))

    def state(self, epoch: int, position: int) -> Any:
        """Return the data set's state before a batch; None if it is not kept."""
        return next((state for *at, state in reversed(self._states) if at == [epoch, position]), None)

    def batches(self, epoch: int, start: int, state: Any = None) -> Iterator[Any]:
        """Yield the batches of an epoch from `start` on.

        Args:
            epoch: number of the epoch.
            start: number of batches to skip.
            state: the data set's state there, if known.
        """
        self._turn += 1
        turn = self._turn
        begun = time.monotonic()
        if state is not None and self.keeps_its_place:
            with borrowed():
                self._stream.begin(turn, epoch, state, start * self._stream.size)
        again = start if state is None or not self.keeps_its_place else 0
        first = 0 if self._lanes > 1 else start  # from the beginning, to see when each worker's part ends

        def requests() -> Iterator[BatchRequest]:
            for position in itertools.count(first):
                yield BatchRequest(turn, epoch, position, position >= start)

        given, ended = first, set()
        for number, answer in enumerate(self._feed.request(requests), first):
            if answer is NoBatch.ENDED:
                ended.add(number % self._lanes)
                if len(ended) == self._lanes:
                    return
                continue
            given += 1
            if given <= start:
                continue
            if given == start + 1 and again:
                _say_again(self._batching.name, again * self._stream.size, start, time.monotonic() - begun)
            if self.keeps_its_place:
                self._states.append((epoch, given, self._stream.state()))
            yield answer

    def close(self) -> None:
        """End the workers."""
        self._feed.close()


def _say_again(name: str, items: int, start: int, seconds: float) -> None:
    warnings.warn(
        f"loader {name!r} read {items} items again in {seconds:.1f} s to get to batch {start}: "
        "no saved state of the data set fits this batch",
        SamplesReadAgain,
        stacklevel=outside(),
    )


def _is_hugging_face(dataset: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "datasets" for cls in type(dataset).__mro__)


def _splits_ranks(dataset: Any) -> bool:
    if _is_hugging_face(dataset):
        return getattr(dataset, "_distributed", None) is not None
    return refers_to(dataset, "get_rank")


def _keeps_its_place(dataset: Any) -> bool:
    """Return True if the data set's `state_dict` is exact; Hugging Face's leaves out the items in shuffle buffers."""
    if not all(callable(getattr(dataset, name, None)) for name in ("state_dict", "load_state_dict")):
        return False
    waiting = [getattr(dataset, "_ex_iterable", None)]
    while waiting:
        stage = waiting.pop()
        if stage is None:
            continue
        if type(stage).__name__ == "BufferShuffledExamplesIterable":
            return False
        waiting.append(getattr(stage, "ex_iterable", None))
        waiting.extend(getattr(stage, "ex_iterables", None) or ())
    return True


def refers_to(dataset: Any, name: str) -> bool:
    """Return True if the code of a data set uses a function, in a method of its classes or in functions these call.

    Args:
        dataset: an iterable data set; data sets in its attributes are searched too.
        name: name of the function, such as "get_worker_info".
    """
    codes: set[types.CodeType] = set()
    held: list[Any] = [dataset]
    seen: set[int] = set()
    while held:
        one = held.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for cls in type(one).__mro__:
            if cls.__module__.partition(".")[0] not in ("torch", "typing", "builtins", "abc"):
                if any(_names(value, name, codes) for value in vars(cls).values()):
                    return True
        for value in getattr(one, "__dict__", {}).values():
            held.extend(each for each in _few(value) if isinstance(each, IterableDataset))
    return False


def _few(value: Any) -> list[Any]:
    return list(value[:64]) if isinstance(value, list | tuple) else [value]


def _names(value: Any, name: str, codes: set[types.CodeType], depth: int = 2) -> bool:
    """Return True if a function uses a name, itself or in functions of its module that it calls."""
    function = getattr(value, "__func__", getattr(value, "fget", value))
    if not isinstance(function, types.FunctionType) or function.__code__ in codes:
        return False
    codes.add(function.__code__)
    inner = [function.__code__]
    while inner:
        code = inner.pop()
        if name in code.co_names:
            return True
        inner.extend(const for const in code.co_consts if isinstance(const, types.CodeType))
        for called in code.co_names if depth else ():
            other = function.__globals__.get(called)
            if isinstance(other, types.FunctionType) and other.__module__ in sys.modules:
                if other.__module__.partition(".")[0] != "torch" and _names(other, name, codes, depth - 1):
                    return True
    return False
