"""The order of an epoch, and which part of it one rank gets."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from truestep.loop.rng.seed import mix


@dataclass(frozen=True, slots=True)
class Batching:
    """How samples become batches.

    A global batch holds `batch_size * world_size` samples; every rank takes a part of it, rank after rank, so the
    samples of a step depend on the product only. Of the last, incomplete one each rank gets as many: where they do not
    divide, it is filled up with its own first samples. With `even=False` no sample is given twice, and ranks may get
    fewer samples, or one batch fewer.

    Args:
        batch_size: samples in a batch of one rank, at least 1.
        shuffle: whether each epoch has an order of its own.
        drop_last: whether an incomplete global batch is left out.
        seed: what the order and all samples are seeded with.
        name: the loader's; two loaders of one seed have different orders.
        rank: this process, 0 ... world_size - 1.
        world_size: how many processes share the epoch.
        even: whether all ranks get equally many samples.
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
        """Return how many batches this rank gets of an epoch of `samples`."""
        full, rest = divmod(samples, self.global_size)
        if self.drop_last or not rest:
            return full
        return full + (self.even or self.rank * -(-rest // self.world_size) < rest)

    def order(self, samples: int, epoch: int) -> torch.Tensor:
        """Return the samples of an epoch in their order, the same on every rank.

        Returns:
            int64, shape (samples,), on the CPU: a permutation by a generator of its own where `shuffle` is set.
        """
        if not self.shuffle:
            return torch.arange(samples)
        generator = torch.Generator().manual_seed(mix(self.seed, zlib.crc32(self.name.encode()), epoch))
        return torch.randperm(samples, generator=generator)

    def parts(self, order: torch.Tensor, start: int = 0) -> Iterator[torch.Tensor]:
        """Give this rank's part of each global batch of an order, from batch `start` on.

        Example:
            >>> last = Batching(2, rank=1, world_size=2)
            >>> [part.tolist() for part in last.parts(torch.arange(7))]
            [[2, 3], [6, 4]]
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
        places = range(self.rank * size, (self.rank + 1) * size)
        if self.even:
            return [whole[place % len(whole)] for place in places]
        return [whole[place] for place in places if place < len(whole)]

    def batch_seed(self, epoch: int, position: int) -> int:
        """Return what the collation and the transform of a batch are seeded with."""
        return mix(self.seed, epoch, position, 1 + self.rank)
