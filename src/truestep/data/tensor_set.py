"""Tensors of equal length as a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from truestep.data._samples import Samples, Transform
from truestep.errors import BadData


class TensorSet(Samples):
    """Fields of equal length, in memory or in a memory map; what `tensors` and most readers return.

    Args:
        tensors: at least one, each of shape (samples, ...), on one device.
        transform: called with the first field of a whole batch, where the data are; returns what replaces it.
        classes: the classes' names.
        decode: turns the first field of a batch into what the transform gets.

    Raises:
        BadData: no tensors, lengths or devices that differ, or something that is no tensor.
    """

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        *,
        transform: Transform | None = None,
        classes: Sequence[str] = (),
        decode: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        _check(tensors)
        super().__init__(len(tensors[0]), transform, classes)
        self._tensors = tuple(tensors)
        self._decode = decode

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The fields of this set, decoded but not transformed; those of a part are copies."""
        if self._rows is None and self._decode is None:
            return self._tensors
        return self.fields(torch.arange(self._count, device=self.device) if self._rows is None else self._rows)

    def fields(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the fields at `rows`; `index_select` takes 0.6 of the time of indexing."""
        fields = tuple(tensor.index_select(0, rows) for tensor in self._tensors)
        return fields if self._decode is None else (self._decode(fields[0]), *fields[1:])

    def place(self, rows: torch.Tensor | None, device: torch.device) -> None:
        """Put the tensors on a device, those of this set only."""
        own = self._tensors if rows is None else tuple(tensor.index_select(0, rows) for tensor in self._tensors)
        self._tensors = tuple(tensor.to(device) for tensor in own)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self._tensors[0].device

    @property
    def held_bytes(self) -> int:
        """What the tensors take."""
        return sum(tensor.nbytes for tensor in self._tensors)


def tensors(*tensors: torch.Tensor, transform: Transform | None = None, classes: Sequence[str] = ()) -> TensorSet:
    """Make a data set of tensors of equal length.

    Args:
        tensors: each of shape (samples, ...), any dtype, all on one device; shared, not copied.
        transform: called with the first field of a whole batch, on the device of the data; returns what replaces it.
            It serves training and evaluation alike: augmentation belongs to the loader of the training set.
        classes: the classes' names, where the last field are labels.

    Raises:
        BadData: lengths or devices that differ, no tensor, or something else.

    >>> import torch
    >>> from truestep import data
    >>> made = data.tensors(torch.arange(6.0).view(3, 2), torch.tensor([0, 1, 0]))
    >>> made[1]
    (tensor([2., 3.]), tensor(1))
    >>> made.batch(torch.tensor([2, 0]))
    (tensor([[4., 5.],
            [0., 1.]]), tensor([0, 0]))
    >>> made.describe()
    '3 samples of float32 (2,), int64 (); 0.0 MB on cpu'
    """
    return TensorSet(tensors, transform=transform, classes=classes)


def _check(fields: Sequence[Any]) -> None:
    if not fields:
        raise BadData("a data set was made of no tensors", remedy="pass at least one tensor")
    for number, field in enumerate(fields):
        if not isinstance(field, torch.Tensor) or field.dim() == 0:
            got = f"a {type(field).__name__}" if not isinstance(field, torch.Tensor) else "one number"
            raise BadData(
                f"field {number} is {got}",
                expected="expected a tensor of shape (samples, ...)",
                remedy="pass `torch.as_tensor(field)`",
            )
    lengths = [len(field) for field in fields]
    if len(set(lengths)) > 1:
        raise BadData(
            "the fields have different numbers of samples",
            expected=f"expected equal lengths, got {', '.join(map(str, lengths))}",
            remedy="pass fields whose first dimension counts the same samples",
        )
    devices = sorted({str(field.device) for field in fields})
    if len(devices) > 1:
        raise BadData(
            "the fields are on different devices",
            expected=f"expected one device, got {' and '.join(devices)}",
            remedy="move them to one with `.to(device)`",
        )
