"""Tensors of a list or a dict that no optimizer holds, in files that read gradients: they are silent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from truestep.events import LeavesGrouped
from truestep.testing import capture_events

STEPS = 60
X = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
Y = X.sum(1) + 1


def leaves() -> dict[str, Tensor]:
    return {
        "w": torch.zeros(4, 3).normal_(0, 0.1).requires_grad_(),
        "b": torch.zeros(3, requires_grad=True),
        "v": torch.full((3,), 0.1, requires_grad=True),
    }


def output(P: dict[str, Tensor], x: Tensor = X) -> Tensor:
    return torch.tanh(x @ P["w"] + P["b"]) @ P["v"]


def train(optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor]) -> None:
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def error(P: dict[str, Tensor], x: Tensor = X) -> Tensor:
    return (output(P, x) - Y).pow(2).mean()


def a_part_by_hand() -> None:
    P = leaves()
    optimizer = torch.optim.Adam([P["w"], P["v"]])
    for _ in range(STEPS):
        optimizer.zero_grad()
        slope = P["b"].grad
        error(P).backward()
        optimizer.step()
        slope = P["b"].grad
        assert slope is not None
        P["b"].data -= 0.1 * slope
        P["b"].grad = None


def points_of_an_equation() -> None:
    P = leaves()
    t = X.clone().requires_grad_()

    def residual() -> Tensor:
        y = output(P, t)
        (speed,) = torch.autograd.grad(y.sum(), t, create_graph=True)
        return speed.pow(2).mean() + (y - Y).pow(2).mean()

    train(torch.optim.Adam(P.values()), residual)
    assert t.grad is not None


def an_attack_in_each_step() -> None:
    P = leaves()

    def loss() -> Tensor:
        batch = {"x": X.clone().requires_grad_(), "y": Y}
        error(P, batch["x"]).backward()
        assert batch["x"].grad is not None
        return error(P, batch["x"] + 0.01 * batch["x"].grad.sign())

    train(torch.optim.Adam(P.values()), loss)


def probed_by_a_helper() -> None:
    P = leaves()
    probe = {**P, "probe": torch.zeros(32, 3, requires_grad=True)}

    def loss() -> Tensor:
        return (torch.tanh(X @ probe["w"] + probe["b"] + probe["probe"]) @ probe["v"] - Y).pow(2).mean()

    train(torch.optim.Adam(P.values()), loss)
    assert probe["probe"].grad is not None


@pytest.mark.parametrize("program", [a_part_by_hand, points_of_an_equation, an_attack_in_each_step, probed_by_a_helper])
def test_tensors_are_not_grouped(program: Callable[[], None]) -> None:
    with capture_events() as events:
        program()
    assert not [event for event in events if isinstance(event, LeavesGrouped)]
