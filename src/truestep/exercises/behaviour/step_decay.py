"""Checks of `step-decay`: the rate falls after epochs, and not after batches."""

from __future__ import annotations

import copy
import warnings
from types import ModuleType

import torch
from torch import nn


def _problem() -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    return nn.Linear(3, 1), list(zip(x.split(16), (x @ torch.randn(3, 1)).split(16), strict=True))


def rates(answer: ModuleType) -> None:
    """The rates of twelve epochs"""
    got = [round(rate, 8) for rate in answer.train(*_problem(), 12)]
    true = [0.1] * 5 + [0.01] * 5 + [0.001] * 2
    assert len(got) == 12, f"there must be one rate per epoch, 12, got {len(got)}"
    reason = "four batches are one epoch, and the schedule counts its own calls"
    assert got == true, f"they must be {true}, got {got}: {reason}"


def learns(answer: ModuleType) -> None:
    """The model learns with these rates"""
    model, batches = _problem()
    twin = copy.deepcopy(model)
    answer.train(model, batches, 7)
    for epoch in range(7):
        for x, y in batches:
            parameters = list(twin.parameters())
            gradients = torch.autograd.grad(nn.functional.mse_loss(twin(x), y), parameters)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_((0.1 if epoch < 5 else 0.01) * gradient)
    same = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    assert same, (
        "seven epochs must give the weights of plain SGD with these rates: one step per batch, cleared gradients"
    )


def order(answer: ModuleType) -> None:
    """The optimizer steps before the schedule"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer.train(*_problem(), 2)
    said = [str(one.message).split(".")[0] for one in caught if "lr_scheduler.step()" in str(one.message)]
    assert not said, f"torch warned: {said[0]}"


CHECKS = (rates, learns, order)
