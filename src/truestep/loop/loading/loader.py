"""The loader: batches of any data set, in an order and with randomness that do not depend on how they are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from inspect import signature
from itertools import islice
from typing import Any

import torch
from torch.utils.data import IterableDataset

from truestep.errors import BadLoader, InexactResume
from truestep.loop.loading.batching import Batching
from truestep.loop.loading.dataset_probe import light_copy, same
from truestep.loop.loading.feed import Assembly, Workers
from truestep.loop.loading.in_memory import MemoryReader, in_memory
from truestep.loop.loading.iterable import StreamReader
from truestep.loop.loading.map_style import SampleReader, gives_batches, tell_epoch
from truestep.loop.process.stacklevel import outside
from truestep.loop.rng.seed import borrowed

State = dict[str, Any]
CPU = torch.device("cpu")


class Loader:
    """Gives the batches of any epoch of a data set, from any position, always the same for one seed.

    The order of an epoch is a permutation by a generator of its own; a sample's randomness is a function of (seed,
    epoch, index), a batch's of (seed, epoch, number). No global generator is drawn from, and none is left changed. So
    batches depend neither on workers nor on what else the program draws, and a resumed epoch goes on exactly.

    Three kinds of data sets are read in three ways:

    - In memory (`truestep.data`, torch's `TensorDataset`, a `Subset` of one): whole batches by index, in this process,
      on `device` where they take at most half of its free memory; `num_workers` is not used. With a `collate_fn` they
      are read sample by sample.
    - Map-style: through torch's DataLoader. A data set with `__getitems__` of its own (Hugging Face) is seeded once a
      batch.
    - Iterable: in their own order. Batches are split over workers and ranks, unless the data set's code asks
      `get_worker_info`, or is Hugging Face's, and so splits itself.

    Args:
        dataset: a map-style or iterable data set; one with `set_epoch` is told the epoch.
        batch_size: samples in a batch of one rank, at least 1.
        shuffle: whether each epoch has an order of its own; not for iterable data sets.
        drop_last: whether an incomplete last batch is left out.
        num_workers: processes that read samples; 0 reads in this one.
        collate_fn: makes a batch of a list of samples; torch's `default_collate` where None.
        transform: called with a batch's fields (`transform(x, y)`), or with the batch where it is no tuple or list.
        pin_memory: whether batches are copied to pinned memory; "auto" does so where `device` is cuda.
        persistent_workers: whether workers live on between epochs.
        prefetch_factor: batches that each worker reads ahead; torch's 2 where None.
        seed: any integer.
        device: where batches will be used.
        name: what tells this loader from others of the run: their orders differ.
        timeout: seconds to wait for a worker's batch; 0 waits for ever.
        rank: this process, 0 ... world_size - 1.
        world_size: how many processes share each epoch: batches of `batch_size * world_size` samples are cut in parts.
        even: whether ranks get equally many samples of an incomplete last batch, some of them twice; False gives
            each sample once, as an evaluation wants.
        multiprocessing_context: how workers are started; torch's default where None.

    Raises:
        BadLoader: a data set or an argument that cannot be used.

    Example:
        >>> loader = Loader([10, 11, 12, 13, 14], batch_size=2)
        >>> [batch.tolist() for batch in loader.epoch(0, start=1)]
        [[12, 13], [14]]
        >>> len(loader)
        3
    """

    def __init__(
        self,
        dataset: Any,
        *,
        batch_size: int,
        shuffle: bool = False,
        drop_last: bool = False,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        transform: Callable[..., Any] | None = None,
        pin_memory: bool | str = "auto",
        persistent_workers: bool = True,
        prefetch_factor: int | None = None,
        seed: int = 0,
        device: torch.device = CPU,
        name: str = "train",
        timeout: float = 0,
        rank: int = 0,
        world_size: int = 1,
        even: bool = True,
        multiprocessing_context: Any = None,
    ) -> None:
        _check_counts(batch_size, num_workers, rank, world_size)
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.name = name
        batching = Batching(batch_size, shuffle, drop_last, seed, name, rank, world_size, even)
        pinned = device.type == "cuda" if pin_memory == "auto" else bool(pin_memory)
        workers = Workers(num_workers, pinned, persistent_workers, prefetch_factor, timeout, multiprocessing_context)
        assembly = Assembly(collate_fn, transform)
        self._seed = seed
        self._reader: MemoryReader | SampleReader | StreamReader
        data = in_memory(dataset) if collate_fn is None else None
        iterable = data is None and _is_iterable(dataset, name, shuffle=shuffle)
        if data is not None:
            self._reader = MemoryReader(data, batching, assembly, device)
        elif iterable:
            self._reader = StreamReader(dataset, batching, assembly, workers, device)
        else:
            self._reader = SampleReader(dataset, batching, assembly, workers, device)
        least = batching.global_size if drop_last else 1
        if not iterable and len(dataset) < least:
            raise BadLoader(
                f"an epoch of loader {name!r} has no batch",
                expected=f"expected a data set of at least {least} samples, got {len(dataset)}",
                remedy="lower batch_size or pass drop_last=False" if len(dataset) else "check where its samples went",
            )
        self._at = (0, 0)
        self._restored: State | None = None
        self._plain = 0
        """How often the loader was walked over by a plain `for`."""

    def __len__(self) -> int:
        """Return how many batches an epoch has; raise TypeError where the data set has no length."""
        return len(self._reader)

    def __iter__(self) -> Iterator[Any]:
        """Give the batches of epoch 0, the next time those of epoch 1, and so on."""
        self._plain += 1
        return self.epoch(self._plain - 1)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Give the batches of an epoch.

        Args:
            epoch: its number, from 0; orders and augmentation differ between epochs.
            start: batches that are left out because they are finished; they are not read again, except from an
                iterable data set without a state of its own.

        Raises:
            BadLoader: `start` lies beyond the epoch, or another epoch began while this one went on.
            WorkerDied: a worker was killed, or did not answer in time.
        """
        if start < 0 or (start and not isinstance(self._reader, StreamReader) and start > len(self)):
            raise BadLoader(
                f"loader {self.name!r} was to start at batch {start}",
                expected="expected at least 0" if start < 0 else f"expected at most {len(self)}, all of an epoch",
                remedy="use the data set and the batch size of the run that is resumed",
            )
        return self._counted(epoch, start)

    def _counted(self, epoch: int, start: int) -> Iterator[Any]:
        reader = self._reader
        if isinstance(reader, StreamReader):
            batches = reader.batches(epoch, start, self._state_for(epoch, start))
        else:
            batches = reader.batches(epoch, start)
        self._at = (epoch, start)
        for given, batch in enumerate(batches, start + 1):
            self._at = (epoch, given)
            yield batch

    def _state_for(self, epoch: int, position: int) -> Any:
        restored = self._restored
        if restored is None or (restored["epoch"], restored["position"]) != (epoch, position):
            return None
        return restored.get("dataset")

    def state_dict(self, position: int | None = None, epoch: int | None = None) -> State:
        """Return where the loader is, and the state of an iterable data set that keeps one.

        Args:
            position: batches of the epoch that are finished; what has been given out where None. The data set's state
                is kept for the last three positions.
            epoch: number of the epoch; the latest that gave a batch where None.

        Returns:
            "epoch", "position", and "dataset" where the data set has a state there.

        Example:
            >>> loader = Loader(range(6), batch_size=2)
            >>> batches = loader.epoch(1)
            >>> _ = next(batches)
            >>> loader.state_dict()
            {'epoch': 1, 'position': 1}
        """
        latest, given = self._at
        epoch = latest if epoch is None else epoch
        at = given if position is None else position
        state: State = {"epoch": epoch, "position": at}
        if isinstance(self._reader, StreamReader):
            own = self._reader.state(epoch, at)
            own = self._state_for(epoch, at) if own is None else own
            if own is not None:
                state["dataset"] = own
        return state

    def load_state_dict(self, state: State) -> None:
        """Make `epoch(state["epoch"], state["position"])` start from the data set's own state, if there is one."""
        self._restored = dict(state)
        self._at = (state["epoch"], state["position"])

    def check_exact(self) -> bool:
        """Warn if a resumed run cannot repeat samples, because the data set draws from a generator of its own.

        The first samples are drawn twice under one seed, from two copies of the data set that share what is large; a
        data set that cannot be copied is not looked at. It calls the data set's code: a run does so at its first save,
        and when it resumes.

        Returns:
            False after a warning (`InexactResume`), else True.
        """
        if isinstance(self._reader, StreamReader) and self._reader.keeps_its_place:
            return True  # what it draws from is part of its own state
        copied = light_copy(self.dataset)
        if copied is None or type(self.dataset).__module__.partition(".")[0] == "datasets":
            return True
        try:
            exact = same(self._few(copied), self._few(copied))
        except Exception:
            return True  # whatever it is, the epoch will raise it with its place
        if not exact:
            warnings.warn(
                f"the first samples of loader {self.name!r} differ when drawn twice under one seed, so a resumed run "
                "does not repeat the one that was stopped: draw from random, numpy.random or torch's global generator, "
                "which the loader seeds for every sample",
                InexactResume,
                stacklevel=outside(),
            )
        return exact

    def _few(self, dataset: Any) -> list[Any]:
        with borrowed() as seed:
            seed(self._seed & 0xFFFFFFFF)
            if isinstance(self._reader, StreamReader):
                tell_epoch(dataset, 0)  # one that seeds its generator there repeats its stream
                return list(islice(iter(dataset), 2))
            if isinstance(self._reader, MemoryReader):
                data = in_memory(dataset)
                return [] if data is None else list(data.batch(torch.zeros(2, dtype=torch.int64, device=data.device)))
            places = range(min(4, len(dataset)))
            return list(dataset.__getitems__(list(places))) if gives_batches(dataset) else [dataset[i] for i in places]

    def close(self) -> None:
        """End the workers; a later epoch starts new ones."""
        self._reader.close()


def check_loader(loader: Any) -> Any:
    """Return what a loop can walk over; raise for a data set, a list or anything else.

    Raises:
        BadLoader: it is neither a loader of the run nor a DataLoader.
    """
    if hasattr(loader, "epoch") and hasattr(loader, "batch_size"):
        return loader
    raise BadLoader(
        f"a loop was given a {type(loader).__name__}, which is no loader",
        expected="expected what run.loader() returned, or a torch DataLoader",
        remedy="write loader = run.loader(dataset, batch_size=32) before the loop",
    )


def _check_counts(batch_size: int, num_workers: int, rank: int, world_size: int) -> None:
    for what, value, least in (("batch_size", batch_size, 1), ("num_workers", num_workers, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadLoader(
                f"{what}={value!r} is no number of {'samples' if least else 'processes'}",
                expected=f"expected an int of at least {least}",
                remedy=f"pass {what}={max(least, 32 if least else 0)} or another number",
            )
    if not 0 <= rank < world_size:
        raise BadLoader(
            f"rank {rank} is none of {world_size} processes",
            expected=f"expected 0 to {world_size - 1}",
            remedy="pass the rank and the world size of the process group",
        )


def _is_iterable(dataset: Any, name: str, *, shuffle: bool) -> bool:
    """Whether a data set is read in its own order; raise for what is no data set."""
    by_index = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    iterable = isinstance(dataset, IterableDataset) or (not by_index and isinstance(dataset, Iterable))
    if isinstance(dataset, Mapping):
        raise BadLoader(
            f"loader {name!r} got a dict of data sets ({', '.join(map(str, list(dataset)[:4]))})",
            expected="expected one data set",
            remedy="pass one of them",
        )
    if not iterable and not by_index:
        raise BadLoader(
            f"loader {name!r} got a {type(dataset).__name__}, which is no data set",
            expected="expected __getitem__ and __len__, or __iter__",
            remedy="add `__len__` to the data set" if hasattr(dataset, "__getitem__") else "pass a torch Dataset",
        )
    if iterable and isinstance(dataset, Iterator):
        raise BadLoader(
            f"loader {name!r} got an iterator ({type(dataset).__name__}), which has one epoch only",
            expected="expected a data set that can be read again",
            remedy="put the code that makes it into `__iter__` of an IterableDataset",
        )
    if iterable and shuffle:
        raise BadLoader(
            f"shuffle=True with an iterable data set ({type(dataset).__name__}), which has no indices to shuffle",
            expected="expected shuffle=False",
            remedy="shuffle inside the data set, or use Hugging Face's `dataset.shuffle(buffer_size=...)`",
        )
    return iterable


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what `run.loader()` does not take.

    Args:
        options: those that are not its own, by name.
    """
    own = ("dataset", "batch_size", "seed", "device", "name", "rank", "world_size")
    known = [name for name in signature(Loader).parameters if name not in own]
    for name in options:
        if name in known:
            continue
        remedy = f"write {near[0]}=" if (near := get_close_matches(name, known, 1)) else "leave it out"
        if name in ("sampler", "batch_sampler", "generator", "worker_init_fn"):
            remedy = f"pass a torch DataLoader: run.loader(DataLoader(dataset, {name}=...))"
        raise BadLoader(
            f"run.loader() was given {name}=, which it does not take",
            expected=f"expected some of {', '.join(known)}",
            remedy=remedy,
        )
