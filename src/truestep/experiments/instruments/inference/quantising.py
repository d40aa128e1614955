"""Quantisation by torchao: linear layers with int8 weights, inputs quantised as they come."""

from __future__ import annotations

import copy
import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from truestep.errors import BadInputs, PackageMissing


def quantised(model: nn.Module) -> nn.Module:
    """Return a copy of a model with int8 linear layers; weights per output, inputs per row, at each call.

    Args:
        model: on the CPU.

    Raises:
        PackageMissing: torchao is not installed.
        BadInputs: the model has no linear layer.
    """
    require()
    if not any(type(module) is nn.Linear for module in model.modules()):
        raise BadInputs(
            f"{type(model).__name__} has no linear layer to quantise",
            expected="expected at least one nn.Linear: int8 is for them only",
            remedy="run the model as it is",
        )
    with quiet():
        quantization: Any = importlib.import_module("torchao.quantization")
        held = copy.deepcopy(model).eval()
        quantization.quantize_(held, quantization.Int8DynamicActivationInt8WeightConfig())
    return held


def require() -> None:
    """Raise an error without torchao.

    Raises:
        PackageMissing: it is not installed.
    """
    if importlib.util.find_spec("torchao") is None:
        raise PackageMissing(
            "quantisation needs torchao, which is not installed",
            expected="expected torchao",
            remedy="install it with `pip install torchao`",
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
