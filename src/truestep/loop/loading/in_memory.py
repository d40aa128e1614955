"""Data sets in memory: read by index, a whole batch at once, without workers, on the device where they fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import torch
from torch.utils.data import Subset, TensorDataset

from truestep.data._batched import Batched
from truestep.loop.loading.batching import Batching
from truestep.loop.loading.dataset_probe import same
from truestep.loop.loading.feed import Assembly
from truestep.loop.rng.seed import borrowed, rng_state


class Tensors:
    """torch's `TensorDataset`, read batch by batch.

    Args:
        tensors: of equal length, on one device; the data set's own stay where they are when these move.
    """

    def __init__(self, tensors: tuple[torch.Tensor, ...]) -> None:
        self._tensors = tensors

    def __len__(self) -> int:
        return len(self._tensors[0])

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the samples at `indices`: `index_select` takes 0.6 of the time of indexing."""
        return tuple(tensor.index_select(0, indices) for tensor in self._tensors)

    def to(self, device: torch.device) -> Self:
        """Move the tensors that are read."""
        self._tensors = tuple(tensor.to(device) for tensor in self._tensors)
        return self

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self._tensors[0].device

    @property
    def nbytes(self) -> int:
        """What they take of memory."""
        return sum(tensor.nbytes for tensor in self._tensors)


class Part:
    """torch's `Subset` of a data set in memory.

    Args:
        whole: what it is a part of.
        indices: which samples of it.
    """

    def __init__(self, whole: Batched, indices: Any) -> None:
        self._whole = whole
        self._indices = torch.as_tensor(indices, dtype=torch.int64, device=whole.device)

    def __len__(self) -> int:
        return len(self._indices)

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the samples at `indices` of the part."""
        return self._whole.batch(self._indices.index_select(0, indices))

    def to(self, device: torch.device) -> Self:
        """Move the whole."""
        self._whole = self._whole.to(device)
        self._indices = self._indices.to(self._whole.device)
        return self

    @property
    def device(self) -> torch.device:
        """Where the whole is."""
        return self._whole.device

    @property
    def nbytes(self) -> int:
        """What the whole takes of memory, for the whole moves."""
        return bytes_of(self._whole)


def in_memory(dataset: Any) -> Batched | None:
    """Return the data set as one that is read batch by batch; None where it is read sample by sample.

    Example:
        >>> found = in_memory(TensorDataset(torch.arange(4), torch.zeros(4)))
        >>> found.batch(torch.tensor([2, 0]))
        (tensor([2, 0]), tensor([0., 0.]))
    """
    if type(dataset) is TensorDataset:
        tensors = dataset.tensors
        plain = all(type(tensor) is torch.Tensor and tensor.layout is torch.strided for tensor in tensors)
        return Tensors(tensors) if plain and len({tensor.device for tensor in tensors}) == 1 else None
    if type(dataset) is Subset:
        whole = in_memory(dataset.dataset)
        return None if whole is None else Part(whole, dataset.indices)
    return dataset if isinstance(dataset, Batched) else None


def bytes_of(data: Batched) -> int:
    """Return what the data take: their own `nbytes`, or the length times the bytes of one sample as it is given."""
    known = getattr(data, "nbytes", None)
    if isinstance(known, int):
        return known
    if not len(data):
        return 0
    with borrowed(data.device):
        sample = data.batch(torch.zeros(1, dtype=torch.int64, device=data.device))
    return len(data) * sum(field.nbytes for field in sample)


def moved(data: Batched, device: torch.device) -> Batched:
    """Return the data on a cuda device if they take at most half of its free memory, else where they are."""
    if device.type != "cuda" or data.device.type == "cuda":
        return data
    free, _ = torch.cuda.mem_get_info(device)
    return data.to(device) if bytes_of(data) <= free // 2 else data


class MemoryReader:
    """Reads whole batches by index.

    A batch is read under seeds of its own, `(seed, epoch, batch)`, if the loader has a transform or if the data set
    itself draws random numbers, which the first batch of every epoch shows. The rest is read without: saving the
    generators' states and putting them back takes longer than a batch.

    Args:
        data: the data set.
        batching: how samples become batches.
        assembly: the transform.
        device: where the data are moved at the first epoch, if they fit.
    """

    def __init__(self, data: Batched, batching: Batching, assembly: Assembly, device: torch.device) -> None:
        self._data = data
        self._batching = batching
        self._assembly = assembly
        self._device = device
        self._draws = assembly.transform is not None
        self._placed = False

    def __len__(self) -> int:
        return self._batching.batches(len(self._data))

    def batches(self, epoch: int, start: int) -> Iterator[Any]:
        """Give the batches of an epoch from `start` on."""
        if not self._placed:
            self._data = moved(self._data, self._device)
            self._placed = True
        data = self._data
        order = self._batching.order(len(data), epoch).to(data.device)
        parts = self._batching.parts(order, start)
        for position, part in enumerate(parts, start):
            if self._draws or position == start:
                yield self._seeded(part, epoch, position)
            else:
                yield data.batch(part)

    def _seeded(self, part: torch.Tensor, epoch: int, position: int) -> Any:
        with borrowed(self._data.device) as seed:
            seed(self._batching.batch_seed(epoch, position))
            before = None if self._draws else rng_state()
            batch: Any = self._data.batch(part)
            if before is not None:
                self._draws = not same(before, rng_state())
            return self._assembly.transformed(batch)

    def close(self) -> None:
        """Do nothing: there are no workers."""
