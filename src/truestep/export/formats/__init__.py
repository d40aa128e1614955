"""The formats of exports, one per file: each writes a model, and loads it without the model's Python.

pt2          the graph of torch.export, for torch
onnx         ONNX, for onnxruntime and others
aoti         compiled code for this machine, by AOTInductor
safetensors  weights alone, with the way to build the model again
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import nn
from torch.export import ExportedProgram

from truestep.errors import UsageError

FORMATS = ("pt2", "onnx", "aoti", "safetensors")
FILES = {"pt2": "model.pt2", "onnx": "model.onnx", "aoti": "model.aoti.pt2", "safetensors": "model.safetensors"}
"""The name of the model in the folder of an export."""


@dataclass(frozen=True)
class Source:
    """The input of a format.

    Attributes:
        model: the model in eval mode, on the CPU.
        program: its trace; None for a format that needs none.
        inputs: names of its inputs.
        free: names of the free dimensions of each input.
    """

    model: nn.Module
    program: ExportedProgram | None
    inputs: Sequence[str]
    free: Sequence[dict[int, str]]


Loaded = Callable[[Sequence[torch.Tensor], dict[str, torch.Tensor]], Any]


class Format(Protocol):
    """A module of this package."""

    TRACED: bool
    """True if the format is written from a trace."""

    def require(self) -> None:
        """Raise an error if a package or a program that the format needs is missing."""

    def write(self, source: Source, path: Path) -> None:
        """Write the model."""

    def load(self, path: Path) -> tuple[Loaded, str]:
        """Return a function that calls the written model, and the name and version of its runtime."""


def format_of(name: str) -> Format:
    """Return the module of a format.

    Raises:
        UsageError: the format is unknown.
    """
    if name not in FORMATS:
        raise UsageError(
            f'"{name}" is not a format',
            expected=f"expected one of {', '.join(FORMATS)}",
            remedy='pass to="onnx"',
        )
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))
