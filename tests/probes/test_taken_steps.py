"""Updates by hand with gradients of `torch.autograd.grad` and `torch.func.grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from truestep.events import BroadcastOnTape, Event, HandStepped, LossRead, TapeRead
from truestep.testing import capture_events

STEPS = 12
X = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
Y = X.sum(1, keepdim=True)


def leaves() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(4, 8).requires_grad_(), torch.zeros(8, requires_grad=True), torch.randn(8, 1).requires_grad_()]


def predict(ws: list[Tensor], x: Tensor) -> Tensor:
    return torch.tanh(x @ ws[0] + ws[1]) @ ws[2]


def error(ws: list[Tensor], x: Tensor = X, y: Tensor = Y) -> Tensor:
    return ((predict(ws, x) - y) ** 2).mean()


def events_of(train: Callable[[], object], *kinds: type[Event]) -> list[Any]:
    with capture_events() as events:
        train()
    return [event for event in events if isinstance(event, kinds)]


def in_place(loss: Callable[[list[Tensor]], Tensor] = error) -> None:
    ws = leaves()
    for _ in range(STEPS):
        slopes = torch.autograd.grad(loss(ws), ws)
        with torch.no_grad():
            for w, slope in zip(ws, slopes, strict=True):
                w -= 0.05 * slope


def through_data() -> None:
    ws = leaves()
    for _ in range(STEPS):
        for w, slope in zip(ws, torch.autograd.grad(error(ws), ws), strict=True):
            w.data = w.data - 0.05 * slope


def new_tensors() -> None:
    ws = leaves()
    for _ in range(STEPS):
        slopes = torch.autograd.grad(error(ws), ws)
        ws = [(w - 0.05 * slope).detach().requires_grad_() for w, slope in zip(ws, slopes, strict=True)]


def transformed() -> None:
    ws = [w.detach() for w in leaves()]
    for _ in range(STEPS):
        slopes, _ = torch.func.grad_and_value(error)(ws)
        ws = [w - 0.05 * slope for w, slope in zip(ws, slopes, strict=True)]


def second_order() -> None:
    """The inner gradients have a graph; the outer ones update the leaves."""
    ws = leaves()
    for _ in range(STEPS):
        inner = torch.autograd.grad(error(ws), ws, create_graph=True)
        fast = [w - 0.05 * slope for w, slope in zip(ws, inner, strict=True)]
        slopes = torch.autograd.grad(error(fast), ws)
        with torch.no_grad():
            for w, slope in zip(ws, slopes, strict=True):
                w -= 0.05 * slope


@pytest.mark.parametrize("train", [in_place, through_data, new_tensors, transformed, second_order])
def test_each_update_is_a_step(train: Callable[[], None]) -> None:
    steps = events_of(train, HandStepped)
    assert len(steps) in (STEPS - 1, STEPS)
    assert len({step.site for step in steps}) == 1


def test_the_last_update_counts_as_well() -> None:
    assert len(events_of(in_place, HandStepped)) == STEPS


@pytest.mark.parametrize("train", [in_place, new_tensors, transformed])
def test_losses_are_read(train: Callable[[], None]) -> None:
    read = events_of(train, LossRead)
    assert read
    assert {one.root for one in read} == {"MeanBackward0"}
    assert read[-1].value < read[0].value


def test_the_tape_is_read() -> None:
    assert all(len(tape.reached) == 3 for tape in events_of(in_place, TapeRead))

    def wide(ws: list[Tensor]) -> Tensor:
        return error(ws, X, Y.squeeze(1))

    assert events_of(lambda: in_place(wide), BroadcastOnTape)
    assert not events_of(in_place, BroadcastOnTape)


def with_an_optimizer() -> None:
    ws = leaves()
    optimizer = torch.optim.SGD(ws, lr=0.05)
    for _ in range(STEPS):
        optimizer.zero_grad()
        error(ws).backward()
        optimizer.step()
        torch.autograd.grad(error(ws), ws)


def without_updates() -> None:
    ws = leaves()
    for rows in torch.arange(len(X)).split(4):
        torch.autograd.grad(error(ws, X[rows], Y[rows]), ws)


def folds() -> None:
    for fold in range(STEPS):
        torch.manual_seed(fold)
        ws = [torch.randn(4, 8).requires_grad_(), torch.randn(8, 1).requires_grad_()]
        torch.autograd.grad((torch.tanh(X @ ws[0]) @ ws[1] - Y).square().mean(), ws)


def attack() -> None:
    ws, x = leaves(), X.clone().requires_grad_()
    for _ in range(STEPS):
        (slope,) = torch.autograd.grad(error(ws, x), x)
        x = (x + 0.01 * slope.sign()).detach().requires_grad_()


def of_each_sample() -> None:
    ws = [w.detach() for w in leaves()]
    for _ in range(STEPS):
        torch.func.vmap(torch.func.grad(error), in_dims=(None, 0, 0))(ws, X[:, None], Y[:, None])
        ws = [w - 0.01 for w in ws]


def penalty() -> None:
    ws = leaves()
    optimizer = torch.optim.SGD(ws, lr=0.01)
    for _ in range(STEPS):
        x = X.clone().requires_grad_()
        (slope,) = torch.autograd.grad(predict(ws, x).sum(), x, create_graph=True)
        optimizer.zero_grad()
        (error(ws) + slope.square().mean()).backward()
        optimizer.step()


@pytest.mark.parametrize("run", [with_an_optimizer, without_updates, folds, attack, of_each_sample, penalty])
def test_other_passes_are_no_steps(run: Callable[[], None]) -> None:
    assert not events_of(run, HandStepped)
