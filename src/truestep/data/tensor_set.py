"""Data sets from tensors of equal length."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

from truestep.data._samples import Samples, Transform
from truestep.data.preprocessing.of_arrays import Arrays, Statistics, normalized
from truestep.data.preprocessing.preparation import Preparation
from truestep.errors import BadData


class TensorSet(Samples):
    """Fields of equal length, in memory or in a memory map, as returned by `tensors` and most readers.

    Args:
        tensors: at least one, each of shape (samples, ...), on one device.
        transform: called with the first field of a whole batch, on the device of the data; returns its replacement.
        classes: names of the classes.
        decode: applied to the first field of a batch before the transform.
        preparation: the preprocessing of the first field, for new files.

    Raises:
        BadData: no tensors, different lengths or devices, or an object that is not a tensor.
    """

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        *,
        transform: Transform | None = None,
        classes: Sequence[str] = (),
        decode: Callable[[torch.Tensor], torch.Tensor] | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        _check(tensors)
        super().__init__(len(tensors[0]), transform, classes)
        self._tensors = tuple(tensors)
        self._decode = decode
        self._preparation = preparation

    def prepare(self) -> Preparation | None:
        """Return the preprocessing before the transform; None if it cannot be described."""
        made = copy.copy(self._preparation)
        if made is not None:
            made.classes = self.classes
        return made

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Fields of this set, decoded but not transformed; those of a part are copies."""
        if self._rows is None and self._decode is None:
            return self._tensors
        return self.fields(torch.arange(self._count, device=self.device) if self._rows is None else self._rows)

    def fields(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the fields at `rows`."""
        # index_select takes 0.6 of the time of indexing.
        fields = tuple(tensor.index_select(0, rows) for tensor in self._tensors)
        return fields if self._decode is None else (self._decode(fields[0]), *fields[1:])

    def place(self, rows: torch.Tensor | None, device: torch.device) -> None:
        """Move the tensors of this set to a device."""
        own = self._tensors if rows is None else tuple(tensor.index_select(0, rows) for tensor in self._tensors)
        self._tensors = tuple(tensor.to(device) for tensor in own)

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self._tensors[0].device

    @property
    def held_bytes(self) -> int:
        """Bytes of the tensors."""
        return sum(tensor.nbytes for tensor in self._tensors)


def tensors(
    *tensors: torch.Tensor,
    mean: Statistics | None = None,
    std: Statistics | None = None,
    transform: Transform | None = None,
    classes: Sequence[str] = (),
) -> TensorSet:
    """Return a data set of tensors of equal length.

    Args:
        tensors: each of shape (samples, ...), any dtype, all on one device; shared, not copied.
        mean: subtracted from the first tensor, once: one number, or one for each index of dimension 1 (features,
            channels). It is saved with a run, and new files are prepared with it.
        std: the divisor after that, in the same form.
        transform: called with the first field of a whole batch, on the device of the data; returns its replacement.
            It applies in training and evaluation: pass augmentation to the loader of the training set instead.
        classes: names of the classes, if the last field holds labels.

    Raises:
        BadData: different lengths or devices, no tensor, an object that is not a tensor, or statistics that do not fit.

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
    _check(tensors)
    first = tensors[0]
    prepared = Arrays(first.shape[1:], first.dtype, mean=mean, std=std, classes=classes)
    values = normalized(first, mean, std)
    return TensorSet((values, *tensors[1:]), transform=transform, classes=classes, preparation=prepared)


def _check(fields: Sequence[Any]) -> None:
    if not fields:
        raise BadData("a data set must have at least one tensor, got none", remedy="pass at least one tensor")
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
            remedy="pass fields with the same samples in their first dimension",
        )
    devices = sorted({str(field.device) for field in fields})
    if len(devices) > 1:
        raise BadData(
            "the fields are on different devices",
            expected=f"expected one device, got {' and '.join(devices)}",
            remedy="move them to one with `.to(device)`",
        )
