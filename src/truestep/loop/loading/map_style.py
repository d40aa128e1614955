"""Reader of map-style data sets: the randomness of a sample is a function of (seed, epoch, index)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.data import Subset, get_worker_info

from truestep.loop.loading.batching import Batching
from truestep.loop.loading.draws import Draws
from truestep.loop.loading.feed import Assembly, Feed, Workers
from truestep.loop.rng.seed import borrowed, mix, mix_each


class Request(NamedTuple):
    """One batch of an epoch."""

    epoch: int
    position: int
    """Number of the batch in the epoch, from 0."""
    indices: list[int]


class MapStyleBatches:
    """Fetches, collates and transforms batches under their own seeds, in this process or in a worker.

    Before each sample, python's, numpy's and torch's global generators are seeded with `mix(seed, epoch, index)`, so
    augmentation does not depend on workers, the order or a resume. A data set with `__getitems__` is seeded once per
    batch, with the batch's first index. The states of the generators are restored afterwards. (`Draws` leaves out
    unnecessary seeding; a batch is read twice if a sample is the first to use a generator after many that did not.)

    Args:
        dataset: any object with `__getitem__`; its `set_epoch`, if any, is called with the epoch.
        batching: the seed and the rank.
        assembly: collation and transform.
        device: device of another generator to seed, once per batch, if samples are read in this process.
    """

    def __init__(self, dataset: Any, batching: Batching, assembly: Assembly, device: torch.device | None) -> None:
        self.dataset = dataset
        self._batching = batching
        self._assembly = assembly
        self._device = device
        self._epoch: int | None = None
        self._draws = Draws()

    def __getitems__(self, request: Request) -> Any:
        epoch, position, indices = request
        if epoch != self._epoch:
            pass_epoch(self.dataset, epoch)
            self._epoch = epoch
        here = get_worker_info() is None
        with borrowed(self._device if here else None, restore=here) as seed:
            number = mix(self._batching.seed, epoch, indices[0])
            seed(number)
            samples = (self._together if gives_batches(self.dataset) else self._each)(indices, epoch, number)
            seed(self._batching.batch_seed(epoch, position))
            return self._assembly.batch(samples)

    def _each(self, indices: list[int], epoch: int, number: int) -> list[Any]:
        base = self._batching.seed
        index = indices[0]

        def get(which: int) -> Any:
            nonlocal index
            index = which
            return self.dataset[which]

        try:
            return self._draws.read(get, indices, lambda: mix_each(base, epoch, last=indices), number)
        except StopIteration as error:
            raise ended_itself(f"index {index}", epoch) from error
        except Exception as error:
            error.add_note(place(f"index {index}", epoch))
            raise

    def _together(self, indices: list[int], epoch: int, _: int) -> list[Any]:
        few = ", ".join(map(str, indices[:8])) + ", ..." * (len(indices) > 8)
        try:
            return list(self.dataset.__getitems__(indices))
        except StopIteration as error:
            raise ended_itself(f"indices {few}", epoch) from error
        except Exception as error:
            error.add_note(place(f"indices {few}", epoch))
            raise


class SampleReader:
    """Reads a map-style data set, with or without workers, from any batch of any epoch."""

    def __init__(
        self, dataset: Any, batching: Batching, assembly: Assembly, workers: Workers, device: torch.device
    ) -> None:
        self._dataset: Sequence[Any] = dataset
        self._batching = batching
        self._feed = Feed(MapStyleBatches(dataset, batching, assembly, device), workers, batching.seed, batching.name)

    def __len__(self) -> int:
        return self._batching.batches(len(self._dataset))

    def batches(self, epoch: int, start: int) -> Iterator[Any]:
        """Yield the batches of an epoch from `start` on; earlier ones are not read."""
        order = self._batching.order(len(self._dataset), epoch)

        def requests() -> Iterator[Request]:
            for position, part in enumerate(self._batching.parts(order, start), start):
                yield Request(epoch, position, part.tolist())

        yield from self._feed.request(requests)

    def close(self) -> None:
        """End the workers."""
        self._feed.close()


def pass_epoch(dataset: Any, epoch: int) -> None:
    """Call the data set's `set_epoch`, if it has one."""
    set_epoch = getattr(dataset, "set_epoch", None)
    if callable(set_epoch):
        set_epoch(epoch)


def gives_batches(dataset: Any) -> bool:
    """Return True if the data set itself has `__getitems__`; that of torch's `Subset` reads sample by sample."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return callable(getattr(dataset, "__getitems__", None))


def place(what: str, epoch: int) -> str:
    """Return the note that is added to errors of the data set."""
    return f"while the loader read {what} of the data set, epoch {epoch}"


def ended_itself(what: str, epoch: int) -> RuntimeError:
    """Return an error for a StopIteration in the data set, which would silently end the loop."""
    return RuntimeError(f"StopIteration {place(what, epoch)}")
