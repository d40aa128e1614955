"""Checks of `minimal-loop`: it equals plain gradient descent."""

from __future__ import annotations

import copy
from types import ModuleType

import torch
from torch import nn

_EPOCHS, _LR = 30, 0.05


def _problem() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(100, 5)
    return nn.Linear(5, 1), x, x @ torch.randn(5, 1) + 0.1 * torch.randn(100, 1)


def _by_hand(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int) -> None:
    """Descend along the gradients, without an optimizer."""
    for _ in range(epochs):
        loss = nn.functional.mse_loss(model(x), y)
        parameters = list(model.parameters())
        with torch.no_grad():
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                parameter.sub_(_LR * gradient)


def learns(answer: ModuleType) -> None:
    """The loss falls"""
    model, x, y = _problem()
    before = nn.functional.mse_loss(model(x), y).item()
    answer.fit(model, x, y, _EPOCHS, _LR)
    after = nn.functional.mse_loss(model(x), y).item()
    assert after < before, (
        f"the loss was {before:.3f} and is {after:.3f}: which line changes the weights, by which sign?"
    )


def one_step(answer: ModuleType) -> None:
    """One epoch is one step along the gradient"""
    _compare(answer, 1, "one epoch must be one step of plain SGD with the given learning rate on all rows")


def all_steps(answer: ModuleType) -> None:
    """Further epochs follow their own gradients"""
    _compare(
        answer, _EPOCHS, "the first step is right, and later ones are not: are the gradients cleared in each epoch?"
    )


def _compare(answer: ModuleType, epochs: int, reason: str) -> None:
    model, x, y = _problem()
    twin = copy.deepcopy(model)
    answer.fit(model, x, y, epochs, _LR)
    _by_hand(twin, x, y, epochs)
    pairs = zip(model.parameters(), twin.parameters(), strict=True)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairs), reason


def last_loss(answer: ModuleType) -> None:
    """The returned number is the loss of the trained model"""
    model, x, y = _problem()
    got = answer.fit(model, x, y, 3, _LR)
    assert isinstance(got, float), f"it must be a float, got {type(got).__name__}: a tensor may keep its graph"
    true = nn.functional.mse_loss(model(x), y).item()
    assert abs(got - true) < 1e-5, f"it must be {true:.5f}, got {got:.5f}: the last loss in the loop is before its step"


def modes(answer: ModuleType) -> None:
    """Layers such as dropout are on in the training, and off for the returned loss"""
    model, x, y = _problem()
    seen: list[tuple[bool, bool]] = []
    model.register_forward_hook(lambda module, *_: seen.append((module.training, torch.is_grad_enabled())))
    model.eval()
    answer.fit(model, x, y, 2, _LR)
    assert seen[:2] == [(True, True)] * 2, "the model came in eval mode, and must be in train mode while it learns"
    assert seen[2:] == [(False, False)], "after the loop, one call in eval mode without a graph must follow"


CHECKS = (learns, one_step, all_steps, last_loss, modes)
