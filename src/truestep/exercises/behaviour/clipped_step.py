"""Checks of `clipped-step`: the step uses gradients of at most the given norm."""

from __future__ import annotations

import math
from types import ModuleType

import torch
from torch import nn


def _step(answer: ModuleType, max_norm: float, before: float = 0.0) -> tuple[float, float, object]:
    """Return the norm of the gradients, the length of the update of SGD with lr 1, and the returned value."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x, y = torch.randn(16, 4), 10 * torch.randn(16, 1)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(nn.functional.mse_loss(model(x), y), parameters)
    true = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    weights = [parameter.detach().clone() for parameter in parameters]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, before) if before else None
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    got = answer.clipped_step(model, optimizer, nn.functional.mse_loss(model(x), y), max_norm)
    moved = sum((a.detach() - b).square().sum().item() for a, b in zip(parameters, weights, strict=True))
    return true, math.sqrt(moved), got


def steps(answer: ModuleType) -> None:
    """The model is updated"""
    assert _step(answer, 1e9)[1] > 0, "the weights did not change: a backward pass and a step are needed"


def large(answer: ModuleType) -> None:
    """Large gradients are clipped before the step"""
    _, moved, _ = _step(answer, 0.5)
    assert moved < 0.51, (
        f"with max_norm 0.5, SGD with lr 1 must move by 0.5, and moved by {moved:.3g}: clip before step()"
    )
    assert moved > 0.49, f"all gradients together must have the norm 0.5, and not each of them, got {moved:.3g}"


def small(answer: ModuleType) -> None:
    """Small gradients stay as they are"""
    true, moved, _ = _step(answer, 1e9)
    assert math.isclose(true, moved, rel_tol=1e-4), (
        f"SGD must move by {true:.4g}, the norm of the gradients, got {moved:.4g}"
    )


def norm(answer: ModuleType) -> None:
    """It returns the norm before clipping, as a number"""
    true, _, got = _step(answer, 0.5)
    assert isinstance(got, float), f"it must be a float, got {type(got).__name__}"
    assert math.isclose(true, got, rel_tol=1e-4), f"it must be {true:.4g}, got {got:.4g}"


def old(answer: ModuleType) -> None:
    """Gradients of earlier steps do not count"""
    true, moved, _ = _step(answer, 1e9, before=5.0)
    assert math.isclose(true, moved, rel_tol=1e-4), (
        "the gradients that were there must be cleared before the backward pass"
    )


CHECKS = (steps, large, small, norm, old)
