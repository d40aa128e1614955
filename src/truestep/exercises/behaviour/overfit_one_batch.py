"""Checks of `overfit-one-batch`: one batch is learned by heart."""

from __future__ import annotations

import copy
from types import ModuleType

import torch
from torch import nn


def _problem() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 4))
    return model, torch.randn(32, 12), torch.randint(0, 4, (32,))


def numbers(answer: ModuleType) -> None:
    """It returns one number per step"""
    losses = answer.overfit(*_problem(), steps=5, lr=1e-2)
    assert isinstance(losses, list), f"it must be a list, got {type(losses).__name__}"
    assert len(losses) == 5, f"it must have 5 losses after 5 steps, got {len(losses)}"
    kinds = {type(loss).__name__ for loss in losses}
    assert kinds == {"float"}, f"losses must be of type float, got {', '.join(kinds)}: a tensor keeps its graph alive"


def first(answer: ModuleType) -> None:
    """The first loss is that of the untrained model"""
    model, x, y = _problem()
    true = nn.functional.cross_entropy(model(x), y).item()
    got = answer.overfit(model, x, y, steps=1, lr=1e-2)[0]
    assert abs(got - true) < 1e-5, f"it must be {true:.4f}, got {got:.4f}: is it computed before the step, from logits?"


def learned(answer: ModuleType) -> None:
    """After 100 steps, the batch is known by heart"""
    model, x, y = _problem()
    losses = answer.overfit(model, x, y, steps=100, lr=1e-2)
    assert losses[-1] < 0.02, f"the last loss must be below 0.02, got {losses[-1]:.4f}: a loop that works can do this"


def exact(answer: ModuleType) -> None:
    """Each step follows its own gradient only"""
    model, x, y = _problem()
    twin = copy.deepcopy(model)
    answer.overfit(model, x, y, steps=8, lr=1e-2)
    optimizer = torch.optim.Adam(twin.parameters(), lr=1e-2)
    for _ in range(8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(twin(x), y).backward()
        optimizer.step()
    same = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    assert same, "8 steps must give the weights of Adam with gradients that are cleared before each backward pass"


def mode(answer: ModuleType) -> None:
    """The model learns in train mode"""
    model, x, y = _problem()
    model.eval()
    seen: list[bool] = []
    model.register_forward_hook(lambda module, *_: seen.append(module.training))
    answer.overfit(model, x, y, steps=2, lr=1e-2)
    assert seen, "the model was never called: call model(x), not model.forward(x), which skips hooks"
    assert all(seen), "the model came in eval mode, and must be in train mode while it learns"


CHECKS = (numbers, first, learned, exact, mode)
