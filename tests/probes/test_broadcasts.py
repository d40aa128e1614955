"""Broadcasts near a loss, in programs of any style."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from truestep.events import BroadcastOnTape
from truestep.testing import capture_events

N = 16
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
ROW, COLUMN = torch.linspace(0.1, 0.9, N), torch.linspace(0.1, 0.9, N)[:, None].clone()
W = torch.zeros(4, 1, requires_grad=True)


def broadcasts(loss: Callable[[], Tensor], *, taken: bool = False) -> list[tuple[int, ...]]:
    with capture_events() as events:
        torch.autograd.grad(loss(), W) if taken else loss().backward()
    found = [event for event in events if isinstance(event, BroadcastOnTape)]
    assert all(event.taken == taken for event in found)
    return [event.shape for event in found]


def entropy(p: Tensor, y: Tensor) -> Tensor:
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


def entropy_of_logits(z: Tensor, y: Tensor) -> Tensor:
    return (z.clamp(min=0) - z * y + torch.log1p(torch.exp(-z.abs()))).mean()


def clipped(log_p: Tensor, advantage: Tensor) -> Tensor:
    ratio = (log_p - log_p.detach()).exp()
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


WRONG = {
    "advantage as a column": lambda: -(torch.tanh(X @ W).squeeze(1) * COLUMN).mean(),
    "advantage with a graph": lambda: -(torch.tanh(X @ W)[:, 0] * (COLUMN - torch.tanh(X @ W))).mean(),
    "advantage that was detached": lambda: -(torch.tanh(X @ W)[:, 0] * (COLUMN - X @ W).detach()).mean(),
    "ratio of PPO": lambda: clipped(torch.tanh(X @ W)[:, 0], COLUMN),
    "weights of samples": lambda: ((X @ W - COLUMN).pow(2) * ROW).mean(),
    "entropy by hand": lambda: entropy(torch.sigmoid(X @ W), ROW),
    "entropy of logits by hand": lambda: entropy_of_logits(X @ W + 0.1, ROW),
    "squared error": lambda: (X @ W - ROW).pow(2).mean(),
}
HEALTHY = {
    "equal shapes": lambda: -(torch.tanh(X @ W) * COLUMN).mean(),
    "one advantage": lambda: -(torch.tanh(X @ W)[:, 0] * torch.ones(1, 1)).mean(),
    "an outer product": lambda: ((X @ W)[:, 0] * ROW[:, None]).mean(),
    "an outer product of results": lambda: ((X @ W)[:, 0].unsqueeze(1) * torch.tanh(X @ W)[:, 0]).mean(),
    "an outer product with itself": lambda: ((X @ W) * (X @ W).squeeze(1)).mean(),
    "a table weighted by rows": lambda: (torch.cdist(X, X) * torch.tanh(X @ W)).mean(),
    "a kernel": lambda: (torch.tanh(X @ W)[:, 0] * COLUMN * torch.cdist(X, X)).sum(),
    "sums of rows": lambda: ((torch.tanh(X @ W)[:, 0] * COLUMN).sum(1) - ROW).pow(2).mean(),
    "products of pairs below an exponential": lambda: torch.exp(torch.tanh(X @ W)[:, 0] * COLUMN).mean(),
    "a weight for each column": lambda: (X * torch.tanh(W[:, 0])).mean() + (X @ W).mean(),
    "entropy by hand": lambda: entropy(torch.sigmoid(X @ W), COLUMN),
    "entropy of logits by hand": lambda: entropy_of_logits(X @ W + 0.1, COLUMN),
    "scores of pairs": lambda: ((X @ W) - (X @ W).t()).abs().mean(),
}


@pytest.mark.parametrize("taken", [False, True], ids=["backward", "autograd.grad"])
@pytest.mark.parametrize("loss", WRONG.values(), ids=WRONG)
def test_values_of_two_samples_that_meet_are_found(loss: Callable[[], Tensor], taken: bool) -> None:
    assert broadcasts(loss, taken=taken) in ([(N,)], [(N, 1)])


@pytest.mark.parametrize("taken", [False, True], ids=["backward", "autograd.grad"])
@pytest.mark.parametrize("loss", HEALTHY.values(), ids=HEALTHY)
def test_tables_on_purpose_are_quiet(loss: Callable[[], Tensor], taken: bool) -> None:
    assert broadcasts(loss, taken=taken) == []


@pytest.mark.parametrize("wrong", [True, False])
def test_a_gradient_of_a_function_for_each_task(wrong: bool) -> None:
    targets = torch.zeros(3, N) if wrong else torch.zeros(3, N, 1)

    def error(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return ((x @ w - y) ** 2).mean()

    with capture_events() as events:
        slopes = torch.func.vmap(torch.func.grad(error), in_dims=(None, 0, 0))(W.detach(), X.expand(3, N, 4), targets)
    assert slopes.shape == (3, 4, 1)
    found = [event.shape for event in events if isinstance(event, BroadcastOnTape)]
    assert found == [(N, 1)] * wrong


def test_forces_between_points_are_quiet() -> None:
    points = torch.randn(N, 1, requires_grad=True)
    with capture_events() as events:
        torch.autograd.grad((points - ROW).pow(2).sum(), points)
        torch.autograd.grad(points.tanh() - ROW, points, torch.ones(N, N))
    assert not [event for event in events if isinstance(event, BroadcastOnTape)]


def test_early_calls_at_a_line_are_read() -> None:
    with capture_events() as events:
        for _ in range(40):
            torch.autograd.grad((X @ W - ROW).pow(2).mean(), W)
    assert len([event for event in events if isinstance(event, BroadcastOnTape)]) == 5
