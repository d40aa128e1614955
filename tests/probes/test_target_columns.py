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
