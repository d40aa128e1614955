"""The methods of `Run` about its processes: one, or the ranks that torchrun started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from truestep.loop.process.device import to_device
from truestep.loop.run.evaluation import joined

if TYPE_CHECKING:
    from truestep.loop.ranks.strategy import Strategy


class RankMethods:
    """Rank and number of processes, and values of all ranks."""

    device: torch.device
    strategy: Strategy

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return self.strategy.rank

    @property
    def world_size(self) -> int:
        """Number of processes that train together."""
        return self.strategy.world_size

    @property
    def is_main_process(self) -> bool:
        """True on rank 0, which writes checkpoints and logs and prints. Always True in a single process."""
        return self.strategy.rank == 0

    def gather(self, value: Any) -> Any:
        """Return a value of all ranks, joined along the first dimension in the order of ranks; all must call this.

        Args:
            value: a tensor of at least one dimension, or tuples, lists and mappings of these. The first dimension may
                differ between ranks.

        Raises:
            BadLoader: the values of the ranks cannot be joined.

        Example:
            >>> from truestep import Run
            >>> run = Run(device="cpu", watch=False)
            >>> run.gather(torch.tensor([1, 2]))
            tensor([1, 2])
        """
        every = self.strategy.gathered(to_device(value, torch.device("cpu")))
        return to_device(joined(every), self.device)

    def barrier(self) -> None:
        """Return when all ranks have called this."""
        self.strategy.barrier()
