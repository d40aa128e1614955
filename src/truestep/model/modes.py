"""Train and eval mode: set for evaluation together with the gradient mode, restored for every submodule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from truestep.errors import BadPart


def train_mode(model: nn.Module) -> None:
    """Set train mode if the root of a model is in eval mode; otherwise submodules frozen in eval mode stay so."""
    _check_model(model)
    if not model.training:
        model.train()


@contextmanager
def evaluating(*models: nn.Module, inference_mode: bool = False) -> Iterator[None]:
    """Put models in eval mode and switch gradients off; restore both, for every submodule, also after an exception.

    Args:
        models: the models to set in eval mode.
        inference_mode: `torch.inference_mode` instead of `torch.no_grad`: a little faster, but tensors that a
            model caches under it make later training raise.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        >>> model[1].eval() and None
        >>> with evaluating(model):
        ...     print(model.training, torch.is_grad_enabled())
        False False
        >>> model.training, model[1].training
        (True, False)
    """
    for model in models:
        _check_model(model)
    before = [(module, module.training) for model in models for module in model.modules()]
    for model in models:
        model.eval()
    try:
        with torch.inference_mode() if inference_mode else torch.no_grad():
            yield
    finally:
        for module, training in before:
            module.training = training


def _check_model(model: object) -> None:
    if not isinstance(model, nn.Module):
        raise BadPart(
            f"a {type(model).__name__} was passed as a model",
            expected="expected one nn.Module per argument",
            remedy="pass models as separate arguments: run.train(loader, first, second)",
        )
