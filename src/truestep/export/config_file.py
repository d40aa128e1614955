"""`config.json`: inputs and outputs of an export, the way to build its model, its preprocessing and its comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import torch
from torch import nn

from truestep import __version__
from truestep.export.calls import Call
from truestep.export.comparing import Comparison
from truestep.export.formats import FILES
from truestep.export.outputs import leaves


def names_of_free(call: Call, free: Mapping[str, Sequence[int]]) -> list[dict[int, str]]:
    """Return names for the free dimensions of each input: "batch", "length", or the input with the number.

    Args:
        call: a call of the model.
        free: the free dimensions by input.
    """
    named = []
    for name, tensor in zip(call.names, call.tensors, strict=True):
        dims = free.get(name, ())
        token = tensor.dim() >= 2 and not tensor.is_floating_point()
        named.append(
            {dim: "batch" if dim == 0 else "length" if dim == 1 and token else f"{name}_{dim}" for dim in dims}
        )
    return named


def inputs_of(call: Call, free: Sequence[dict[int, str]]) -> list[dict[str, Any]]:
    """Return name, type and shape of each input, with names for free dimensions."""
    return [
        {"name": name, "dtype": _dtype(tensor), "shape": [dims.get(at, size) for at, size in enumerate(tensor.shape)]}
        for name, tensor, dims in zip(call.names, call.tensors, free, strict=True)
    ]


def outputs_of(outputs: Sequence[tuple[Call, Any]]) -> list[dict[str, Any]]:
    """Return type and shape of each output; a dimension that differs between calls is "batch" or None.

    Args:
        outputs: calls of different sizes, with their outputs.
    """
    columns = zip(*([(call.size, leaf) for leaf in leaves(output)] for call, output in outputs), strict=True)
    described = []
    for column in columns:
        shape: list[Any] = []
        for at in range(column[0][1].dim()):
            sizes = {leaf.shape[at] for _, leaf in column if at < leaf.dim()}
            batch = all(at < leaf.dim() and leaf.shape[at] == size for size, leaf in column)
            shape.append("batch" if at == 0 and batch else sizes.pop() if len(sizes) == 1 else None)
        described.append({"dtype": _dtype(column[0][1]), "shape": shape})
    return described


def built(model: nn.Module, factory: str | None, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the class of a model, with "module:factory" that builds it, or None, and the factory's arguments."""
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    return {"class": kind, "factory": factory, "arguments": dict(arguments or {})}


def document(
    format: str,
    *,
    model: Mapping[str, Any],
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    origin: Mapping[str, Any],
    preprocessing: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the content of `config.json`, without the comparison.

    Args:
        format: of the export.
        model: its class, and the way to build it.
        inputs, outputs: their names, types and shapes.
        origin: checkpoint, step and metric of the weights.
        preprocessing: of the training; None if the run has none.
    """
    return {
        "format": format,
        "file": FILES[format],
        "model": dict(model),
        "inputs": list(inputs),
        "outputs": list(outputs),
        "weights": dict(origin),
        "preprocessing": preprocessing,
        "versions": versions(format),
    }


def compared(found: Comparison) -> dict[str, Any]:
    """Return the comparison for `config.json`."""
    return {
        "runtime": found.runtime,
        "calls": len(found.rows),
        "batch_sizes": sorted({row.size for row in found.rows}),
        "largest_difference": found.largest,
        "largest_relative_difference": found.relative,
        "tolerance": found.tolerance,
    }


def versions(format: str) -> dict[str, str]:
    """Return the versions of the packages that wrote an export."""
    names = ["onnx", "onnxscript"] if format == "onnx" else []
    return {"truestep": __version__, "torch": str(torch.__version__)} | {name: metadata.version(name) for name in names}


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
