"""`Loader`: batches of any data set, with an order and randomness that do not depend on how they are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
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
from truestep.loop.loading.map_style import SampleReader, gives_batches, pass_epoch
from truestep.loop.process.stacklevel import outside
from truestep.loop.rng.seed import borrowed

State = dict[str, Any]
CPU = torch.device("cpu")


class Loader:
    """Yields the batches of any epoch of a data set, from any position, always the same for a seed.

    The order of an epoch is a permutation drawn from a separate generator. The randomness of a sample is a function of
    (seed, epoch, index), that of a batch of (seed, epoch, number). Global generators keep their states. So batches do
    not depend on workers or on other random numbers in the program, and a resumed epoch continues exactly.

    Three kinds of data sets are read in three ways:

    - In memory (`truestep.data`, torch's `TensorDataset`, a `Subset` of one): whole batches by index, in this process,
      on `device` if they take at most half of its free memory; `num_workers` is not used. With a `collate_fn` they
      are read sample by sample.
    - Map-style: through torch's DataLoader. A data set that defines `__getitems__` (Hugging Face) is seeded once per
      batch.
    - Iterable: in their own order. Batches are split over workers and ranks, unless the data set splits itself: its
      code calls `get_worker_info`, or it is one of Hugging Face.

    Args:
        dataset: a map-style or iterable data set; its `set_epoch`, if any, is called with the epoch.
        batch_size: samples in a batch of one rank, at least 1.
        shuffle: use another order in each epoch; not for iterable data sets.
        drop_last: leave out an incomplete last batch.
        num_workers: number of processes that read samples; 0 to read in this process.
        collate_fn: turns a list of samples into a batch; None for torch's `default_collate`.
        transform: called with a batch's fields (`transform(x, y)`), or with the batch if it is not a tuple or list.
        pin_memory: copy batches to pinned memory; "auto" does so if `device` is a CUDA device.
        persistent_workers: keep workers between epochs.
        prefetch_factor: number of batches that each worker reads ahead; None for torch's default of 2.
        seed: any integer.
        device: device on which batches are used.
        name: name of this loader; loaders with the same seed and other names have other orders.
        timeout: seconds to wait for a worker's batch; 0 for no limit.
        rank: rank of this process, 0 ... world_size - 1.
        world_size: number of processes that share each epoch, in parts of batches of `batch_size * world_size` samples.
        even: give all ranks equally many batches, as training needs it; False leaves out those that repeat samples.
        multiprocessing_context: start method of workers; None for torch's default.

    Raises:
        BadLoader: the data set or an argument is invalid.

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
        self._seed, self._batching = seed, batching
        self._reader: MemoryReader | SampleReader | StreamReader
        data = in_memory(dataset) if collate_fn is None else None
        iterable = data is None and _is_iterable(dataset, name, shuffle=shuffle)
        if data is not None:
            self._reader = MemoryReader(data, batching, assembly, device)
        elif iterable:  # the end of a stream is not known ahead: a run asks all ranks whether they have a batch
            self._reader = StreamReader(dataset, replace(batching, even=False), assembly, workers, device)
        else:
            self._reader = SampleReader(dataset, batching, assembly, workers, device)
        least = batching.global_size if drop_last else 1
        if not iterable and len(dataset) < least:
            raise BadLoader(
                f"an epoch of loader {name!r} has no batch",
                expected=f"expected a data set of at least {least} samples, got {len(dataset)}",
                remedy="lower batch_size or pass drop_last=False"
                if len(dataset)
                else "check why the data set is empty",
            )
        self._at = (0, 0)
        self._restored: State | None = None
        self._plain = 0
        """Number of passes by a plain `for`."""

    def __len__(self) -> int:
        """Return the number of batches in an epoch; raise TypeError if the data set has no length."""
        return len(self._reader)

    @property
    def global_batch_size(self) -> int:
        """Return the number of samples in a batch of all ranks together."""
        return self._batching.global_size

    @property
    def streams(self) -> bool:
        """Return True for an iterable data set."""
        return isinstance(self._reader, StreamReader)

    def weight(self, position: int) -> float:
        """Return the factor of this rank's mean of a batch in the mean over ranks; 1 for a complete batch.

        Args:
            position: number of the batch in an epoch.
        """
        if self._batching.world_size == 1 or self.streams:
            return 1.0
        return self._batching.weight(len(self.dataset), position)

    def own_batches(self) -> Iterator[Any]:
        """Return an iterator over the batches of epoch 0, without those that only repeat samples of another rank."""
        batches = self.epoch(0)
        if self._batching.world_size == 1 or self.streams:
            return batches
        return islice(batches, sum(self.weight(position) > 0 for position in range(len(self))))

    def __iter__(self) -> Iterator[Any]:
        """Return the batches of epoch 0, the next time those of epoch 1, and so on."""
        self._plain += 1
        return self.epoch(self._plain - 1)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Return an iterator over the batches of an epoch.

        Args:
            epoch: number of the epoch, from 0; order and augmentation differ between epochs.
            start: number of finished batches, which are skipped; only an iterable data set without saved state reads
                them again.

        Raises:
            BadLoader: `start` is beyond the end of the epoch, or another epoch started during this one.
            WorkerDied: a worker was killed or timed out.
        """
        if start < 0 or (start and not isinstance(self._reader, StreamReader) and start > len(self)):
            most = "" if start < 0 else f" and at most {len(self)}, the batches of an epoch"
            raise BadLoader(
                f"start of loader {self.name!r} must be at least 0{most}, got {start}",
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
        """Return the position of the loader, with the state of an iterable data set that has one.

        Args:
            position: number of finished batches of the epoch; None for the number yielded. The data set's state is kept
                for the last three positions.
            epoch: number of the epoch; None for the latest one with a batch.

        Returns:
            "epoch", "position", and "dataset" if the data set has a state there.

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
        """Make `epoch(state["epoch"], state["position"])` start from the data set's saved state, if there is one."""
        self._restored = dict(state)
        self._at = (state["epoch"], state["position"])

    def check_exact(self) -> bool:
        """Warn if a resumed run cannot repeat samples, because the data set draws from a private generator.

        The first samples are drawn twice under one seed, from a light copy of the data set; one that cannot be copied
        is not checked. This runs code of the data set: a run calls it at its first save, and when it resumes.

        Returns:
            False after a warning (`InexactResume`), else True.
        """
        if isinstance(self._reader, StreamReader) and self._reader.keeps_its_place:
            return True  # its generators are part of its saved state
        copied = light_copy(self.dataset)
        if copied is None or type(self.dataset).__module__.partition(".")[0] == "datasets":
            return True
        try:
            exact = same(self._few(copied), self._few(copied))
        except Exception:
            return True  # the epoch will raise the same error, with its place
        if not exact:
            warnings.warn(
                f"the first samples of loader {self.name!r} differ when drawn twice with the same seed, so a resumed "
                "run reads other samples than the stopped run: draw from random, numpy.random or torch's global "
                "generator, which the loader seeds for every sample",
                InexactResume,
                stacklevel=outside(),
            )
        return exact

    def _few(self, dataset: Any) -> list[Any]:
        with borrowed() as seed:
            seed(self._seed & 0xFFFFFFFF)
            if isinstance(self._reader, StreamReader):
                pass_epoch(dataset, 0)  # a data set that seeds its generator in set_epoch repeats its stream
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
    """Return the argument if it is a loader of a run; raise an error for a data set, a list or another object.

    Raises:
        BadLoader: the argument has not the interface of `Loader`.
    """
    if hasattr(loader, "epoch") and hasattr(loader, "batch_size"):
        return loader
    raise BadLoader(
        f"the loader of a loop must be from run.loader() or a torch DataLoader, got a {type(loader).__name__}",
        remedy="write loader = run.loader(dataset, batch_size=32) before the loop",
    )


def _check_counts(batch_size: int, num_workers: int, rank: int, world_size: int) -> None:
    for name, value, least in (("batch_size", batch_size, 1), ("num_workers", num_workers, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadLoader(
                f"{name} must be {'a positive integer' if least else 'an integer of at least 0'}, got {value!r}",
                remedy=f"pass {name}={max(least, 32 if least else 0)} or another number",
            )
    if not 0 <= rank < world_size:
        raise BadLoader(
            f"rank must be from 0 to {world_size - 1} with {world_size} processes, got {rank}",
            remedy="pass the rank and the world size of the process group",
        )


def _is_iterable(dataset: Any, name: str, *, shuffle: bool) -> bool:
    """Return True if a data set is read in its own order; raise an error if it is not a data set."""
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
            f"loader {name!r} got a {type(dataset).__name__}, which is not a data set",
            expected="expected __getitem__ and __len__, or __iter__",
            remedy="add `__len__` to the data set" if hasattr(dataset, "__getitem__") else "pass a torch Dataset",
        )
    if iterable and isinstance(dataset, Iterator):
        raise BadLoader(
            f"loader {name!r} got an iterator ({type(dataset).__name__}), which has one epoch only",
            expected="expected a data set that can be read again",
            remedy="move the code that creates it into `__iter__` of an IterableDataset",
        )
    if iterable and shuffle:
        raise BadLoader(
            f"shuffle=True with an iterable data set ({type(dataset).__name__}), which has no indices to shuffle",
            expected="expected shuffle=False",
            remedy="shuffle inside the data set, or use Hugging Face's `dataset.shuffle(buffer_size=...)`",
        )
    return iterable


def check_options(options: Mapping[str, Any]) -> None:
    """Raise an error for unknown options of `run.loader()`.

    Args:
        options: the additional options of the call, by name.

    Raises:
        BadLoader: an option is unknown; gives the nearest name.
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
            f'"{name}" is not an argument of run.loader()',
            expected=f"expected one of {', '.join(known)}",
            remedy=remedy,
        )
