"""The order of the samples in an epoch, and the part of one rank."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from truestep.loop.rng.seed import mix


@dataclass(frozen=True, slots=True)
class Batching:
    """Assignment of samples to batches and ranks.

    A global batch has `batch_size * world_size` samples. The ranks take consecutive parts of it, so the samples of a
    step depend only on the product. Of the last, incomplete one, no sample is given twice: the last ranks get fewer
    samples, and `weight` is the factor of their mean in the mean of all. A rank that gets no sample repeats those of
    rank 0, with weight 0, since all ranks must make the same steps; with `even=False` it gets one batch fewer.

    Args:
        batch_size: samples in a batch of one rank, at least 1.
        shuffle: use another order in each epoch.
        drop_last: leave out an incomplete global batch.
        seed: seed of the order and of all samples.
        name: name of the loader; loaders with the same seed and other names have other orders.
        rank: rank of this process, 0 ... world_size - 1.
        world_size: number of processes that share the epoch.
        even: give all ranks equally many batches.
    """

    batch_size: int
    shuffle: bool = False
    drop_last: bool = False
    seed: int = 0
    name: str = "train"
    rank: int = 0
    world_size: int = 1
    even: bool = True

    @property
    def global_size(self) -> int:
        """Samples in one batch of all ranks together."""
        return self.batch_size * self.world_size

    def batches(self, samples: int) -> int:
        """Return the number of batches of this rank in an epoch of `samples` samples."""
        full, rest = divmod(samples, self.global_size)
        if self.drop_last or not rest:
            return full
        return full + (self.even or self.rank * -(-rest // self.world_size) < rest)

    def weight(self, samples: int, position: int) -> float:
        """Return the factor of this rank's mean of a batch in the mean over ranks, 1 for a complete batch.

        Args:
            samples: samples in an epoch.
            position: number of the batch.

        Example:
            >>> [Batching(2, rank=rank, world_size=2).weight(7, position=1) for rank in range(2)]
            [1.3333333333333333, 0.6666666666666666]
        """
        whole = min(self.global_size, samples - position * self.global_size)
        size = -(-whole // self.world_size)
        return max(0, min(size, whole - self.rank * size)) * self.world_size / whole

    def order(self, samples: int, epoch: int) -> torch.Tensor:
        """Return the indices of the samples of an epoch in their order, the same on every rank.

        Returns:
            int64, shape (samples,), on the CPU. With `shuffle`, a permutation drawn from a separate generator.
        """
        if not self.shuffle:
            return torch.arange(samples)
        generator = torch.Generator().manual_seed(mix(self.seed, zlib.crc32(self.name.encode()), epoch))
        return torch.randperm(samples, generator=generator)

    def parts(self, order: torch.Tensor, start: int = 0) -> Iterator[torch.Tensor]:
        """Yield this rank's part of each global batch of an order, from batch `start` on.

        Example:
            >>> last = Batching(2, rank=1, world_size=2)
            >>> [part.tolist() for part in last.parts(torch.arange(7))]
            [[2, 3], [6]]
        """
        count = self.batches(len(order))
        if start >= count:
            return
        if self.world_size == 1:
            yield from order[start * self.batch_size : count * self.batch_size].split(self.batch_size)  # type: ignore[no-untyped-call]
            return
        for number in range(start, count):
            whole = order[number * self.global_size : (number + 1) * self.global_size]
            yield whole[torch.tensor(self.share(range(len(whole))), device=order.device)]

    def share(self, whole: Sequence[Any]) -> list[Any]:
        """Return this rank's part of a global batch, or of the incomplete last one."""
        size = -(-len(whole) // self.world_size)
        own = list(whole[self.rank * size : (self.rank + 1) * size])
        return list(whole[:size]) if self.even and not own else own

    def batch_seed(self, epoch: int, position: int) -> int:
        """Return the seed for the collation and the transform of a batch."""
        return mix(self.seed, epoch, position, 1 + self.rank)
