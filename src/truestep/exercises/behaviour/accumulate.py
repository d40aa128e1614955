"""Checks of `accumulate`: the gradient is that of one large batch."""

from __future__ import annotations

import copy
from types import ModuleType

import torch
from torch import nn

Batches = list[tuple[torch.Tensor, torch.Tensor]]


def _compare(answer: ModuleType, sizes: tuple[int, ...], reason: str, before: float = 0.0) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = torch.randn(sum(sizes), 6), torch.randint(0, 3, (sum(sizes),))
    whole = copy.deepcopy(model)
    nn.functional.cross_entropy(whole(x), y).backward()
    if before:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, before)
    answer.accumulate(model, list(zip(x.split(sizes), y.split(sizes), strict=True)))
    for one, true in zip(model.parameters(), whole.parameters(), strict=True):
        assert one.grad is not None, "a parameter has no gradient: was `backward()` called?"
        assert true.grad is not None
        factor = (one.grad.norm() / true.grad.norm()).item()
        assert torch.allclose(one.grad, true.grad, atol=1e-5), (
            f"{reason} (its norm is {factor:.3g} times the right one)"
        )


def one_batch(answer: ModuleType) -> None:
    """One batch"""
    _compare(answer, (16,), "one batch must give the gradient of its mean loss")


def equal(answer: ModuleType) -> None:
    """Four batches of equal size"""
    _compare(answer, (8, 8, 8, 8), "four batches must give the gradient of the mean over all 32 samples")


def ragged(answer: ModuleType) -> None:
    """Batches of different sizes"""
    _compare(
        answer, (8, 8, 3), "each sample must count the same: a mean of means gives those of a small batch more weight"
    )


def cleared(answer: ModuleType) -> None:
    """Gradients that were there before do not count"""
    _compare(answer, (8, 8), "the gradients of earlier steps must be cleared first", before=1.0)


CHECKS = (one_batch, equal, ragged, cleared)
