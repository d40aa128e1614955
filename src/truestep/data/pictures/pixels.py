"""Conversion of pixels from 0 ... 255 to normalized numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from truestep.errors import BadData

Numbers = float | Sequence[float]


class Pixels:
    """Converts uint8 images to `dtype`: (pixels / 255 - `mean`) / `std`.

    Args:
        channels: number of channels of the images, which have shape (batch, channels, height, width).
        dtype: a floating dtype or its name; uint8 leaves the bytes unchanged.
        mean: mean of the pixels in [0, 1], one number or one per channel; None subtracts nothing.
        std: standard deviation of the pixels in [0, 1], one number or one per channel; None does not divide.

    Raises:
        BadData: an invalid dtype, mean or std.

    Source: operations and their order are those of torchvision's `ToTensor` and `Normalize`.

    >>> Pixels(1, mean=0.5, std=0.5)(torch.tensor([[[[0, 255]]]], dtype=torch.uint8))
    tensor([[[[-1.,  1.]]]])
    """

    def __init__(
        self,
        channels: int,
        dtype: torch.dtype | str = torch.float32,
        mean: Numbers | None = None,
        std: Numbers | None = None,
    ) -> None:
        self.dtype = dtype_of(dtype)
        if self.dtype == torch.uint8 and (mean is not None or std is not None):
            raise BadData(
                "dtype must be floating with mean and std, got uint8",
                remedy="leave out dtype, or leave out mean and std",
            )
        self._mean = _per_channel("mean", mean, channels)
        self._std = _per_channel("std", std, channels)
        if self._std is not None and not bool((self._std > 0).all()):
            raise BadData(f"std must be above 0, got {std!r}", remedy="pass the standard deviation of pixels in [0, 1]")

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        if self.dtype == torch.uint8:
            return images
        made = images.to(torch.float32).div_(255)
        if self._mean is not None:
            self._mean = self._mean.to(made.device)
            made.sub_(self._mean)
        if self._std is not None:
            self._std = self._std.to(made.device)
            made.div_(self._std)
        return made.to(self.dtype)

    def bytes_for(self, images: torch.Tensor) -> int:
        """Return the bytes for the converted images and their float32 intermediates."""
        return images.numel() * (self.dtype.itemsize + (0 if self.dtype in (torch.uint8, torch.float32) else 4))


def dtype_of(dtype: torch.dtype | str) -> torch.dtype:
    """Return the dtype of that name.

    Raises:
        BadData: it is not a dtype for images.
    """
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not (found.is_floating_point or found == torch.uint8):
        raise BadData(
            f'dtype must be "float32", "float16", "bfloat16", "float64" or "uint8", got {dtype!r}',
            remedy="leave it out for float32",
        )
    return found


def fits_in_memory(nbytes: int) -> bool:
    """Return True if `nbytes` fit into half of the available memory, or if the system does not report it."""
    try:
        memory = Path("/proc/meminfo").read_text(encoding="ascii")
        free = int(memory.partition("MemAvailable:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return True
    return nbytes <= free // 2


def _per_channel(what: str, value: Numbers | None, channels: int) -> torch.Tensor | None:
    if value is None:
        return None
    numbers = [float(value)] if isinstance(value, int | float) else [float(number) for number in value]
    if len(numbers) not in (1, channels):
        raise BadData(
            f"{what} must be one number or {channels}, one per channel, got {value!r}",
            remedy=f"pass one {what} for all channels",
        )
    return torch.tensor(numbers, dtype=torch.float32).view(-1, 1, 1)
