"""Dropout of functions that are models, by a mask of random numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from truestep.events import FunctionCalled
from truestep.testing import capture_events

settings = {"rate": 0.2}
X = torch.randn(96, 6, generator=torch.Generator().manual_seed(0))
Y = X[:, :2].sum(1, keepdim=True)


def train(rate: float) -> None:
    torch.manual_seed(0)
    weights = {"w0": (torch.randn(6, 16) * 0.4).requires_grad_(), "w1": (torch.randn(16, 1) * 0.2).requires_grad_()}
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)
    for rows in torch.randint(0, 64, (12, 32)):
        settings["rate"] = 0.2
        loss = F.mse_loss(masked(weights, X[rows]), Y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        settings["rate"] = rate
        with torch.no_grad():
            masked(weights, X[64:])


def masked(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    h = torch.relu(x @ weights["w0"])
    drop = settings["rate"]
    h = h * torch.bernoulli(torch.full_like(h, 1 - drop)) / (1 - drop)
    return h @ weights["w1"]


def events_of(rate: float) -> list[FunctionCalled]:
    with capture_events() as events:
        train(rate)
    return [event for event in events if isinstance(event, FunctionCalled) and not event.tracked]


@pytest.mark.parametrize(("rate", "on"), [(0.2, True), (0.0, False)])
def test_a_mask_with_a_rate_of_zero_is_no_dropout(rate: float, on: bool) -> None:
    found = events_of(rate)
    assert found
    assert all((call.dropout is not None) is on for call in found)
