"""Base class of data sets in memory: samples by index, batch-wise transform, parts, description."""

from __future__ import annotations

import copy
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch.utils.data import Dataset

from truestep.data.preprocessing.preparation import Preparation, name_of
from truestep.errors import BadData, NoSuchSample

Transform = Callable[[Any], Any]


class Samples(Dataset[tuple[torch.Tensor, ...]], ABC):
    """Samples in memory or in a memory map, read a whole batch at a time.

    Args:
        count: number of samples.
        transform: called with the first field of a whole batch, on the device of the data; returns its replacement.
        classes: names of the classes 0, 1, ...; empty without classes.
    """

    def __init__(self, count: int, transform: Transform | None, classes: Sequence[str]) -> None:
        self._count = count
        self._rows: torch.Tensor | None = None
        self.transform = transform
        self.classes = tuple(classes)

    @abstractmethod
    def fields(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the fields at `rows` of the whole data, int64 of shape (batch,), before the transform."""

    @abstractmethod
    def place(self, rows: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
        """Move the data at `rows` to a device, all data if `rows` is None; return their rows in the moved data."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device of the data."""

    @property
    @abstractmethod
    def held_bytes(self) -> int:
        """Bytes of the whole data, including those outside this part."""

    @property
    def preparation(self) -> Preparation | None:
        """The preprocessing of this set, for new files; None if it cannot be described."""
        made = self.prepare()
        if made is not None:
            made.transform = name_of(self.transform)
        return made

    def prepare(self) -> Preparation | None:
        """Return the preprocessing before the transform; None if it cannot be described."""
        return None

    def __len__(self) -> int:
        return self._count if self._rows is None else len(self._rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        number = checked(index, len(self))
        return tuple(field[0] for field in self.batch(torch.tensor([number], device=self.device)))

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, ...]]:
        """Return several samples, for torch's DataLoader; read as one batch, so that texts have equal lengths."""
        fields = self.batch(torch.tensor(indices, dtype=torch.int64, device=self.device))
        return list(zip(*(field.unbind(0) for field in fields), strict=True))

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the samples at `indices`: int64, shape (batch,), on the device of the data.

        Returns:
            One tensor per field, each of shape (batch, ...).
        """
        try:
            fields = self.fields(indices if self._rows is None else self._rows.index_select(0, indices))
        except IndexError:
            odd = indices[(indices < 0) | (indices >= len(self))]
            if not len(odd):
                raise
            raise _beyond(int(odd[0]), len(self)) from None
        return fields if self.transform is None else (self.transform(fields[0]), *fields[1:])

    def to(self, device: torch.device | str) -> Self:
        """Move the data of this set to a device, in place; other parts of the same data are not moved."""
        goal = torch.device(device)
        here = self.device
        if goal.type != here.type or goal.index not in (None, here.index):
            count, self._rows = len(self), self.place(self._rows, goal)
            self._count = count if self._rows is None else self._count
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the data of this set on its device."""
        return self.held_bytes * len(self) // max(1, self._count)

    def split(self, part: float, *, seed: int | None) -> tuple[Self, Self]:
        """Return two sets without a common sample. They share the data.

        Args:
            part: size of the first set: a float in (0, 1) as a fraction of the samples, an int as their number.
            seed: draws the first set at random; None takes the first samples. Both sets keep the order of the data.

        Raises:
            BadData: one of the sets is empty.
        """
        first, second = parted(len(self), part, seed)
        return self._part(first), self._part(second)

    def _part(self, indices: torch.Tensor) -> Self:
        made = copy.copy(self)
        rows = indices.to(self.device)
        made._rows = rows if self._rows is None else self._rows.index_select(0, rows)
        return made

    def describe(self) -> str:
        """Return one line with the number of samples, their fields, and their size in MB."""
        row = torch.zeros(1, dtype=torch.int64, device=self.device) if self._rows is None else self._rows[:1]
        fields = ", ".join(
            f"{str(field.dtype).removeprefix('torch.')} {tuple(field.shape[1:])}" for field in self.fields(row)
        )
        classes = f"; {len(self.classes)} classes" if self.classes else ""
        return f"{len(self):,} samples of {fields}{classes}; {self.nbytes / 1e6:.1f} MB on {self.device}"


def checked(index: int, count: int) -> int:
    """Return an index counted from the front.

    Raises:
        NoSuchSample: it is beyond the ends (an IndexError, which ends a plain `for` loop).
    """
    number = operator.index(index)
    if not -count <= number < count:
        raise _beyond(number, count)
    return number % count


def _beyond(number: int, count: int) -> NoSuchSample:
    """Return the error of an index beyond the end of a data set."""
    return NoSuchSample(
        f"index {number} of {count} samples",
        expected=f"expected an index from 0 to {count - 1}" if count else "expected a data set with samples",
        remedy="draw indices below len(dataset)",
    )


def parted(count: int, part: float, seed: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices of two parts of `count` samples, each in ascending order; see `Samples.split`."""
    first = round(part * count) if isinstance(part, float) else part
    if not 0 < first < count:
        raise BadData(
            f"part {part!r} of {count} samples leaves one of the two sets empty",
            expected="expected a float in (0, 1), or a number of samples",
            remedy="pass 0.9 for 90 %",
        )
    if seed is None:
        return torch.arange(first), torch.arange(first, count)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return order[:first].sort().values, order[first:].sort().values
