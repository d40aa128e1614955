"""Targets that are a feature of their table, scaled and shifted: which feature, and whether the model reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from truestep.events import TargetsCompared
from truestep.testing import capture_events


class Network(nn.Module):
    """A linear model of all features, or of the first ones."""

    def __init__(self, features: int = 5) -> None:
        super().__init__()
        self.layer = nn.Linear(features, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x[:, : self.layer.in_features]).squeeze(1)  # type: ignore[no-any-return]


def compared(make: Callable[[torch.Tensor], torch.Tensor], net: nn.Module, noise: float = 1.0) -> list[TargetsCompared]:
    """Train on a table with a last feature made from the targets, which the others predict but for noise."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(22):
            x = torch.randn(40, 4)
            y = 3 * (x[:, 0] + x[:, 1] + noise * torch.randn(40))
            F.mse_loss(net(torch.cat([x, make(y)[:, None]], 1)), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, TargetsCompared)]


@pytest.mark.parametrize("make", [lambda y: y, lambda y: 5 - 2 * y], ids=["the same", "scaled and shifted"])
def test_the_feature_that_is_the_target_is_named(make: Callable[[torch.Tensor], torch.Tensor]) -> None:
    (event,) = compared(make, Network())
    assert (event.column, event.reads) == (4, True)


def test_other_features_and_targets_without_noise_are_not() -> None:
    assert compared(lambda y: y + 0.1 * torch.randn(40), Network()) == []
    assert compared(lambda y: y * torch.rand(()), Network()) == [], "another scale in each batch"
    assert compared(lambda y: y, Network(), noise=0.0) == []


def test_a_feature_that_the_model_does_not_read_is_not() -> None:
    assert compared(lambda y: y, Network(4)) == []


def windows(targets: Callable[[torch.Tensor], torch.Tensor], *, by_hand: bool = False) -> list[TargetsCompared]:
    """Train on windows of noisy series with two sensors, of 12 steps, and targets of the steps 8 to 16."""
    torch.manual_seed(0)
    series = torch.randn(400, 2)
    for at in range(1, 400):
        series[at] += 0.8 * series[at - 1]
    samples = torch.stack([series[at : at + 16] for at in range(380)])
    inputs, wanted = samples[:, :12].clone(), targets(samples[:, 8:].clone()).clone()
    net = nn.Sequential(nn.Flatten(), nn.Linear(24, wanted[0].numel()))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(22):
            index = torch.randint(0, 380, (64,))
            x, y = inputs[index], wanted[index]
            result = net(x).reshape(y.shape)
            loss = ((result - y) ** 2).mean() if by_hand else F.mse_loss(result, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, TargetsCompared)]


@pytest.mark.parametrize("by_hand", [False, True], ids=["a loss of torch", "by hand"])
def test_targets_of_a_series_are_not_its_features(by_hand: bool) -> None:
    assert windows(lambda y: y[:, :4], by_hand=by_hand) == []  # at the end of the window: a reconstruction as well
    assert windows(lambda y: y[:, 4:], by_hand=by_hand) == []
    assert windows(lambda y: y[:, 4], by_hand=by_hand) == []
    assert windows(lambda y: y[:, 2:6], by_hand=by_hand) == []


def test_targets_that_are_cut_out_of_the_window_are_a_reconstruction() -> None:
    torch.manual_seed(0)
    series = torch.randn(400, 2).cumsum(0)
    inputs = torch.stack([series[at : at + 12] for at in range(380)])
    net = nn.Sequential(nn.Flatten(), nn.Linear(24, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
    with capture_events() as events:
        for _ in range(22):
            x = inputs[torch.randint(0, 380, (64,))]
            y = x[:, -1].clone()
            F.mse_loss(net(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert [event for event in events if isinstance(event, TargetsCompared)] == []
