"""Quantisation by torchao: linear layers with int8 weights, inputs quantised as they come."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from truestep.errors import BadInputs, PackageMissing


def quantised(model: nn.Module) -> nn.Module:
    """Return a copy of a model with int8 linear layers; weights per output, inputs per row, at each call.

    Args:
        model: on the CPU.

    Raises:
        PackageMissing: torchao is not installed.
        BadInputs: the model has no linear layer that torchao quantises, or one in float64.
    """
    require()
    if any(module.weight.dtype == torch.float64 for module in model.modules() if isinstance(module, nn.Linear)):
        raise BadInputs(
            f"{type(model).__name__} has linear layers in float64, which torchao does not quantise",
            expected="expected float32, bfloat16 or float16",
            remedy="convert the model with .float()",
        )
    with quiet():
        quantization: Any = importlib.import_module("torchao.quantization")
        held = copy.deepcopy(model).eval()
        quantization.quantize_(held, quantization.Int8DynamicActivationInt8WeightConfig())
    if not layers(held)[0]:
        raise BadInputs(
            f"{type(model).__name__} has no linear layer to quantise",
            expected="expected at least one nn.Linear: int8 is for them only",
            remedy="export the model as it is",
        )
    return held


def layers(model: nn.Module) -> tuple[int, int]:
    """Return the number of quantised linear layers, and that of all linear layers.

    Example:
        >>> layers(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        (0, 1)
    """
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return sum(type(module.weight).__module__.startswith("torchao.") for module in linear), len(linear)


def without_torchao(program: ExportedProgram) -> ExportedProgram:
    """Return the graph of a quantised model with plain int8 weights and operators of torch only, equal in every bit."""
    table: Any = torch.export.default_decompositions()
    own = {operator: made for operator, made in table.items() if getattr(operator, "namespace", "") == "torchao"}
    with quiet():
        made: ExportedProgram = program.run_decompositions(own)
    for node in made.graph.nodes:
        node.meta.pop("from_node", None)  # the history of the graph, larger than its weights in a small model
    return made


def require() -> None:
    """Raise an error without torchao.

    Raises:
        PackageMissing: it is not installed.
    """
    if importlib.util.find_spec("torchao") is None:
        raise PackageMissing(
            "int8 needs torchao, which is not installed",
            expected="expected torchao",
            remedy="install it with `pip install 'truestep[quantise]'`",
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Context manager without the warnings of torchao about itself: missing kernels for GPUs, types of its enums."""
    loggers = [logging.getLogger(name) for name in ("torchao", "torch.utils._pytree")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
