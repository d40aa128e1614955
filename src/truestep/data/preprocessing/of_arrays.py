"""Preprocessing of arrays of numbers: shape, type, mean and standard deviation."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from truestep.data._files import decoded
from truestep.data.preprocessing.preparation import Preparation, Prepared
from truestep.errors import BadData, BadInputs

Statistics = float | Sequence[float]

_TEXTS = (".csv", ".txt", ".tsv")
_TENSORS = (".pt", ".pth", ".npy", ".safetensors")


class Arrays(Preparation):
    """Numbers of a fixed shape, minus a mean, divided by a standard deviation.

    Args:
        shape: of one sample.
        dtype: of one sample.
        mean, std: one number, or one for each index of the first dimension of a sample; None for none.
        classes, transform: as in `Preparation`.
    """

    kind = "tensors"

    def __init__(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        *,
        mean: Statistics | None = None,
        std: Statistics | None = None,
        classes: Sequence[str] = (),
        transform: str = "",
    ) -> None:
        super().__init__(classes, transform)
        self.shape, self.dtype, self.mean, self.std = tuple(shape), dtype, mean, std

    def describe(self) -> dict[str, Any]:
        """Return the arguments of the class, in types of JSON."""
        return {
            "shape": list(self.shape),
            "dtype": str(self.dtype).removeprefix("torch."),
            "mean": _listed(self.mean),
            "std": _listed(self.std),
        }

    @classmethod
    def from_description(cls, held: Mapping[str, Any], classes: Sequence[str], transform: str) -> Self:
        """Return the preprocessing that `describe` described."""
        return cls(
            held["shape"],
            getattr(torch, held["dtype"]),
            mean=held["mean"],
            std=held["std"],
            classes=classes,
            transform=transform,
        )

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Return numbers of shape (samples, ...), normalized."""
        return normalized(values, self.mean, self.std)

    def read(self, path: Path) -> list[Prepared]:
        """Return the samples in a file: .npy, .pt, .safetensors with one tensor, or lines of numbers between commas.

        Raises:
            BadInputs: they have another shape than the samples of the training.
            BadData: the file cannot be read.
        """
        values = _numbers(path)
        given, own = _without_ones(values.shape), _without_ones(self.shape)
        if given == own and tuple(values.shape[1:]) != self.shape:
            values = values.reshape(1, *self.shape)
        elif _without_ones(values.shape[1:]) == own or values.shape[1:] == (math.prod(self.shape),):
            values = values.reshape(-1, *self.shape)  # without channels, or with a line for each sample
        if tuple(values.shape[1:]) != self.shape:
            raise BadInputs(
                f"{path} has samples of shape {tuple(values.shape[1:])}",
                expected=f"expected {self.shape}, the shape of the samples of the training",
                remedy="write the same features, in the same order",
            )
        if not self.dtype.is_floating_point and values.is_floating_point() and not torch.equal(values, values.round()):
            raise BadInputs(
                f"{path} has fractions",
                expected=f"expected integers: the training had {str(self.dtype).removeprefix('torch.')}",
                remedy="write the same kind of numbers",
            )
        made = self(values.to(self.dtype))
        place = "" if len(made) == 1 else ", sample {}"
        return [Prepared(f"{path}{place.format(at + 1)}", (row,)) for at, row in enumerate(made)]


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def normalized(values: torch.Tensor, mean: Statistics | None, std: Statistics | None) -> torch.Tensor:
    """Return (values - mean) / std of values of shape (samples, ...).

    Args:
        values: floats, shape (samples, ...).
        mean, std: one number, or one for each index of dimension 1; None for none.

    Raises:
        BadData: statistics of another number, a standard deviation that is not positive, or values that are integers.
    """
    if mean is None and std is None:
        return values
    if not values.is_floating_point():
        raise BadData(
            f"mean and std need floats, got {str(values.dtype).removeprefix('torch.')}",
            remedy="convert the tensor with .float()",
        )
    for name, numbers in (("mean", mean), ("std", std)):
        if numbers is not None:
            shaped = _shaped(name, numbers, values)
            values = values - shaped if name == "mean" else values / shaped
    return values


def _shaped(name: str, numbers: Statistics, values: torch.Tensor) -> torch.Tensor:
    listed = torch.tensor([float(numbers)] if isinstance(numbers, int | float) else [float(one) for one in numbers])
    if len(listed) != 1 and (values.dim() < 2 or len(listed) != values.shape[1]):
        raise BadData(
            f"{name} has {len(listed)} numbers",
            expected=f"expected one, or one for each index of dimension 1 of {tuple(values.shape)}",
            remedy=f"pass one {name} for all values",
        )
    if name == "std" and not bool((listed > 0).all()):
        raise BadData(f"std must be above 0, got {numbers!r}", remedy="pass the standard deviation of the values")
    return listed.to(values.dtype).view(-1, *([1] * (values.dim() - 2))).to(values.device)


def _numbers(path: Path) -> torch.Tensor:
    if path.suffix in _TEXTS:
        return _of_lines(path)
    if path.suffix not in _TENSORS:
        raise BadData(
            "the file is not an array of numbers",
            path=path,
            expected=f"expected a name that ends with {', '.join((*_TENSORS, *_TEXTS))}",
            remedy="write it with numpy.save",
        )
    try:
        if path.suffix == ".npy":
            import numpy

            held: Any = torch.from_numpy(numpy.load(path, allow_pickle=False))
        elif path.suffix == ".safetensors":
            from safetensors.torch import load_file

            (held,) = load_file(path).values()
        else:
            held = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # readers raise many kinds of errors for a damaged file
        raise BadData(
            "the file cannot be read",
            path=path,
            expected=f"expected one tensor, got {type(error).__name__}: {str(error).splitlines()[0][:120]}",
            remedy="write it again",
        ) from error
    if not isinstance(held, torch.Tensor) or not held.dim():
        raise BadData("the file has no tensor", path=path, expected="expected one tensor", remedy="write one tensor")
    return held


def _of_lines(path: Path) -> torch.Tensor:
    rows: list[list[float]] = []
    separator = "\t" if path.suffix == ".tsv" else ","
    for number, cells in enumerate(csv.reader(decoded(path, "utf-8").splitlines(), delimiter=separator), 1):
        if not cells:
            continue
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            odd = next(cell for cell in cells if not _is_number(cell))
            raise BadData(
                f"{odd!r} is not a number",
                path=path,
                where=f"line {number}",
                expected="expected numbers alone, without a line of names",
                remedy="delete the line, or correct the cell",
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise BadData(
                f"the line has {len(rows[-1])} numbers",
                path=path,
                where=f"line {number}",
                expected=f"expected {len(rows[0])}, as in the first line",
                remedy="correct the line",
            )
    if not rows:
        raise BadData("the file is empty", path=path, remedy="check the path")
    return torch.tensor(rows)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _listed(numbers: Statistics | None) -> float | list[float] | None:
    return (
        float(numbers) if isinstance(numbers, int | float) else None if numbers is None else list(map(float, numbers))
    )
