"""Map-style data sets, sample by sample: each one's randomness is a function of (seed, epoch, index)."""

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
    """The number of the batch in the epoch."""
    indices: list[int]


class Samples:
    """Fetches, collates and transforms a batch under seeds of its own, in this process or in a worker.

    Around each sample, python's, numpy's and torch's global generators are seeded with `mix(seed, epoch, index)`, so
    augmentation depends neither on workers nor on the order or on a resume. A data set with `__getitems__` draws for a
    whole batch: it is seeded once, with the batch's first index. The generators come back as they were. (`Draws` leaves
    out seeds that no sample asks for; a batch in which a sample first draws after many that did not is read twice.)

    Args:
        dataset: anything with `__getitem__`; with `set_epoch` it is told the epoch.
        batching: the seed and the rank.
        assembly: how samples become a batch.
        device: where its generator is seeded too, once a batch, when samples are read in this process.
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
            tell_epoch(self.dataset, epoch)
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
    """Reads a map-style data set through workers, from any batch of any epoch."""

    def __init__(
        self, dataset: Any, batching: Batching, assembly: Assembly, workers: Workers, device: torch.device
    ) -> None:
        self._dataset: Sequence[Any] = dataset
        self._batching = batching
        self._feed = Feed(Samples(dataset, batching, assembly, device), workers, batching.seed, batching.name)

    def __len__(self) -> int:
        return self._batching.batches(len(self._dataset))

    def batches(self, epoch: int, start: int) -> Iterator[Any]:
        """Give the batches of an epoch from `start` on; those before it are not read."""
        order = self._batching.order(len(self._dataset), epoch)

        def requests() -> Iterator[Request]:
            for position, part in enumerate(self._batching.parts(order, start), start):
                yield Request(epoch, position, part.tolist())

        yield from self._feed.ask(requests)

    def close(self) -> None:
        """End the workers."""
        self._feed.close()


def tell_epoch(dataset: Any, epoch: int) -> None:
    """Call the data set's `set_epoch`, where it has one."""
    set_epoch = getattr(dataset, "set_epoch", None)
    if callable(set_epoch):
        set_epoch(epoch)


def gives_batches(dataset: Any) -> bool:
    """Whether the data set itself has `__getitems__`; torch's `Subset` has one that reads sample by sample."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return callable(getattr(dataset, "__getitems__", None))


def place(what: str, epoch: int) -> str:
    """Return the note that the user's errors get."""
    return f"while the loader read {what} of the data set, epoch {epoch}"


def ended_itself(what: str, epoch: int) -> RuntimeError:
    """Return an error for a StopIteration of the user's, which ends loops quietly."""
    return RuntimeError(f"StopIteration {place(what, epoch)}")
