"""The base class of preprocessing that is saved with a run, and the way back from its description."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from truestep.errors import BadInputs

_HOMES = {
    "images": "of_pictures:Pictures",
    "table": "of_rows:Rows",
    "text": "of_lines:Lines",
    "tokens": "of_prompts:Prompts",
    "tensors": "of_arrays:Arrays",
}
"""Module and class of each kind."""


@dataclass(frozen=True)
class Prepared:
    """One input of a model, read from a file.

    Attributes:
        source: the file, with the place in it.
        fields: the tensors of one sample, as a training set has them, without the label.
    """

    source: str
    fields: tuple[torch.Tensor, ...]


class Preparation(ABC):
    """The preprocessing of a data set, without its data.

    Args:
        classes: names of the labels 0, 1, ...; empty without classes.
        transform: name of the function that the data set was read with as `transform=`; "" without one.
    """

    kind: ClassVar[str]

    def __init__(self, classes: Sequence[str] = (), transform: str = "") -> None:
        self.classes = tuple(classes)
        self.transform = transform

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the arguments of the class, in types of JSON, without `classes` and `transform`."""

    @classmethod
    @abstractmethod
    def from_description(cls, held: Mapping[str, Any], classes: Sequence[str], transform: str) -> Self:
        """Return the preprocessing that `describe` described."""

    @abstractmethod
    def read(self, path: Path) -> list[Prepared]:
        """Return the inputs in a file, prepared like those of the training.

        Raises:
            BadInputs: the file does not fit the preprocessing.
            BadData: the file is missing or damaged.
        """

    def batch(self, prepared: Sequence[Prepared]) -> tuple[torch.Tensor, ...]:
        """Return the fields of several inputs as one batch.

        Raises:
            BadInputs: they have different shapes.
        """
        columns = list(zip(*(one.fields for one in prepared), strict=True))
        for column in columns:
            shapes = {tuple(field.shape) for field in column}
            if len(shapes) > 1:
                raise BadInputs(
                    "the inputs have different shapes, and cannot be one batch",
                    expected=f"expected one shape, got {', '.join(map(str, sorted(shapes)[:4]))}",
                    remedy="pass batch_size=1",
                )
        return tuple(torch.stack(column) for column in columns)

    def document(self) -> dict[str, Any]:
        """Return everything that is needed to prepare new inputs, in types of JSON.

        Example:
            >>> from truestep import data
            >>> data.tensors(torch.zeros(4, 3), std=2.0).preparation.document()["shape"]
            [3]
        """
        return {"kind": self.kind, "classes": list(self.classes), "transform": self.transform} | self.describe()


def preparation_of(document: Mapping[str, Any]) -> Preparation | None:
    """Return the preprocessing of a document; None for one that is the user's own.

    Raises:
        BadInputs: another version has written it.
    """
    kind = document.get("kind")
    if kind is None:
        return None
    if kind not in _HOMES:
        raise BadInputs(
            f'preprocessing of the kind "{kind}" is unknown',
            expected=f"expected one of {', '.join(_HOMES)}",
            remedy="install the version of truestep that the run was trained with",
        )
    module, _, name = _HOMES[kind].partition(":")
    found: type[Preparation] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found.from_description(document, document["classes"], document["transform"])


def name_of(transform: Callable[..., Any] | None) -> str:
    """Return the name of a transform; "" for none."""
    return "" if transform is None else str(getattr(transform, "__qualname__", type(transform).__qualname__))
