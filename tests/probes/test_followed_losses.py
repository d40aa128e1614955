"""Losses that are followed: a mark on the tape before the loss function, found by the backward pass or not."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import LossFollowed
from truestep.testing import capture_events

X, Y = torch.ones(8, 3), torch.zeros(8, 2)


def followed(step: Callable[[nn.Module, nn.Module], Tensor]) -> list[list[bool]]:
    """Return for each line whether its losses were differentiated."""
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    with capture_events() as events:
        for _ in range(4):
            optimizer.zero_grad()
            step(first, second).backward()
            optimizer.step()
    lines: dict[object, list[bool]] = {}
    for event in events:
        if isinstance(event, LossFollowed):
            lines.setdefault(event.site, []).append(event.differentiated)
    return list(lines.values())


def test_a_loss_that_is_left_out() -> None:
    def step(first: nn.Module, second: nn.Module) -> Tensor:
        loss = F.mse_loss(first(X), Y)
        F.l1_loss(second(X), Y)
        return loss

    assert followed(step) == [[True] * 3, [False] * 3]


def test_metrics_of_an_output_that_is_differentiated() -> None:
    def step(first: nn.Module, second: nn.Module) -> Tensor:
        out = first(X)
        loss = F.mse_loss(out, Y)
        F.l1_loss(out, Y)
        F.l1_loss(10 * out[:, 0] + 3, Y[:, 0])
        return loss

    assert followed(step) == [[True] * 3] * 3


def test_the_last_of_several_losses_of_a_line() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    with capture_events() as events:
        for _ in range(4):
            optimizer.zero_grad()
            for head in (first, second):
                loss = F.mse_loss(head(X), Y)
            loss.backward()
            optimizer.step()
    assert [event.only_last for event in events if isinstance(event, LossFollowed)] == [True] * 3


def test_gradients_that_are_taken_may_be_of_any_loss() -> None:
    def step(first: nn.Module, second: nn.Module) -> Tensor:
        inner = F.l1_loss(second(X), Y)
        torch.autograd.grad(inner, list(second.parameters()))
        return F.mse_loss(first(X), Y)

    assert followed(step) == [[True] * 3] * 2
