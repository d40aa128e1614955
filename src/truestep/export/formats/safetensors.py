"""Weights with plain keys, and the way to build the model again, in `config.json` beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model

from truestep.export.factories import build
from truestep.export.formats import Loaded, Source

TRACED = False


def require() -> None:
    """Return: safetensors is a dependency of this package."""


def write(source: Source, path: Path) -> None:
    """Write the weights; of tied weights, one."""
    save_model(source.model, str(path), metadata={"format": "pt"})


def load(path: Path) -> tuple[Loaded, str]:
    """Return a function that calls the model of `config.json` with the written weights, and the version of torch."""
    described = json.loads((path.parent / "config.json").read_text(encoding="utf-8"))["model"]
    model = build(described["factory"], described["arguments"])
    load_model(model, str(path), strict=True)
    model.eval()

    def call(args: Sequence[torch.Tensor], kwargs: dict[str, torch.Tensor]) -> Any:
        with torch.no_grad():
            return model(*args, **kwargs)

    return call, f"{described['factory']}, torch {torch.__version__}"
