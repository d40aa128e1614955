"""The graph of torch.export with its weights, for `torch.export.load`."""

from __future__ import annotations

import copy
from pathlib import Path

import torch

from truestep.export.formats import Loaded, Source

TRACED = True


def require() -> None:
    """Return: torch is enough."""


def write(source: Source, path: Path) -> None:
    """Write the graph with its weights, and without the batch that it was traced with."""
    assert source.program is not None
    program = copy.copy(source.program)
    program.example_inputs = None
    torch.export.save(program, path)


def load(path: Path) -> tuple[Loaded, str]:
    """Return a function that calls the written model, and the name and version of its runtime."""
    module = torch.export.load(path).module()
    return lambda args, kwargs: module(*args, **kwargs), f"torch {torch.__version__}"
