"""Statistics of tensors, measured on their device and read together at the end."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a tensor: of magnitudes if it is complex, of the local part if it is distributed.

    Attributes:
        mean: the mean; NaN if one of the values is NaN.
        std: the standard deviation, with the number of values as divisor.
        max: the largest magnitude.
        zeros: the share of values that are exactly zero, in [0, 1].
        nans: number of values that are NaN.
        infs: number of infinite values.
    """

    mean: float
    std: float
    max: float
    zeros: float
    nans: int
    infs: int

    @property
    def rms(self) -> float:
        """The root of the mean square."""
        return math.hypot(self.mean, self.std)

    @property
    def finite(self) -> bool:
        """True if no value is NaN or infinite."""
        return not self.nans and not self.infs


class Measured:
    """The statistics of one tensor: computed on its device now, copied to the CPU by `read`.

    Attributes:
        known: the statistics; None before `read`, and for tensors that are empty or cannot be measured.
        trouble: the reason why it cannot be measured; "" otherwise.
    """

    __slots__ = ("_numbers", "known", "trouble")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.known: Statistics | None = None
        self.trouble = ""
        self._numbers: torch.Tensor | None = None
        try:
            self._numbers = _numbers(tensor)
        except Exception as error:  # a dtype without arithmetic, a tensor subclass: training goes on
            self.trouble = f"{tensor.dtype}: {str(error).partition(chr(10))[0]}"

    @property
    def numbers(self) -> torch.Tensor | None:
        """The measurements on the device; None without any, or after `read`."""
        return self._numbers

    def take(self, values: list[float]) -> None:
        """Set the statistics from the numbers, in the order of their measurement."""
        mean, std, largest, zeros, nans, infs = values
        self.known = Statistics(mean, std, largest, zeros, int(nans), int(infs))
        self._numbers = None


def read(measured: Iterable[Measured]) -> None:
    """Read all measurements, in one copy per device."""
    by_device: dict[torch.device, dict[int, Measured]] = {}
    for one in measured:
        if one.numbers is not None:
            by_device.setdefault(one.numbers.device, {})[id(one)] = one
    for found in by_device.values():
        rows = torch.stack([one.numbers for one in found.values() if one.numbers is not None]).tolist()
        for one, row in zip(found.values(), rows, strict=True):
            one.take(row)


def local(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the local values of a tensor as a plain tensor; None if it has none that can be read."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor) or tensor.is_meta or tensor.is_quantized:
        return None
    if tensor.is_nested:
        return tensor.values()
    if tensor.layout is torch.sparse_coo:
        return tensor.coalesce().values()
    return tensor if tensor.layout is torch.strided else None


@torch.no_grad()
def _numbers(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return mean, std, largest magnitude, share of zeros, and the numbers of NaN and of infinite values."""
    values = local(tensor)
    if values is None or not values.numel():
        return None
    with torch.autocast(values.device.type, enabled=False):
        if values.is_complex():
            values = values.abs()
        wide = torch.float32 if values.device.type == "mps" else torch.float64
        values = values.to(wide if values.dtype is torch.float64 else torch.float32)
        std, mean = torch.std_mean(values, correction=0)
        zeros = (values.numel() - values.count_nonzero()) / values.numel()
        nans, infs = values.isnan().count_nonzero(), values.isinf().count_nonzero()
        found = (mean, std, values.abs().amax(), zeros, nans, infs)
        return torch.stack([number.to(wide) for number in found])
