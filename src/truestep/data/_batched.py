"""The seam between data sets in memory and the loader: whole batches by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    import torch


@runtime_checkable
class Batched(Protocol):
    """A data set that returns whole batches by index; the loader reads it without workers."""

    def __len__(self) -> int:
        """Return the number of samples."""

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the samples at `indices`.

        Args:
            indices: int64, shape (batch,), on the device of the data.

        Returns:
            One tensor per field, each of shape (batch, ...), on the device of the data.
        """

    def to(self, device: torch.device) -> Self:
        """Move the data to a device in place, if they fit; memory-mapped data stay on the disk."""

    @property
    def device(self) -> torch.device:
        """The device of the data."""
