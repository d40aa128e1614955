"""Logarithms of a sigmoid of a sigmoid in a loss, in any form."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from truestep.events import SquashedTwice
from truestep.testing import capture_events

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).float()


def forms(loss: Callable[[Tensor], Tensor]) -> list[str]:
    w = torch.zeros(4, requires_grad=True)
    with capture_events() as events:
        loss(X @ w).backward()
    return [event.form for event in events if isinstance(event, SquashedTwice)]


def of_logits(z: Tensor) -> Tensor:
    return (z.clamp(min=0) - z * Y + torch.log1p(torch.exp(-z.abs()))).mean()


def of_probabilities(p: Tensor) -> Tensor:
    return -(Y * torch.log(p + 1e-8) + (1 - Y) * torch.log(1 - p + 1e-8)).mean()


WRONG = {
    "logsigmoid": lambda z: -logsigmoid(torch.sigmoid(z)).mean(),
    "logsigmoid of minus": lambda z: -0.5 * logsigmoid(-torch.sigmoid(z)[Y > 0]).sum() / 3 + z.pow(2).mean(),
    "entropy of logits": lambda z: of_logits(torch.sigmoid(z)) + 0.1 * z.pow(2).sum(),
}
HEALTHY = {
    "logsigmoid": lambda z: -logsigmoid(z).mean(),
    "entropy of logits": of_logits,
    "entropy": lambda z: of_probabilities(torch.sigmoid(z)),
    "difference of probabilities": lambda z: -logsigmoid(torch.sigmoid(z) - torch.sigmoid(-2 * z)).mean(),
    "scaled": lambda z: -logsigmoid(5 * torch.sigmoid(z) - 2.5).mean(),
    "a gate before a layer": lambda z: -logsigmoid(torch.sigmoid(z) @ torch.ones(16, 16)).mean(),
    "a cost of gates": lambda z: softplus(-torch.sigmoid(z)).mean() + softplus(torch.sigmoid(z)).mean(),
    "a chance that something happens": lambda z: torch.log(1 - torch.exp(-torch.sigmoid(z))).mean(),
    "a transmission": lambda z: torch.log(torch.exp(-torch.sigmoid(z)) + 1e-6).mean(),
    "a scale": lambda z: ((Y - z).pow(2) / softplus(torch.sigmoid(z))).mean(),
    "two gates": lambda z: (z * softplus(torch.sigmoid(z))).mean(),
    "a temperature": lambda z: -torch.log_softmax(z / (1 + torch.sigmoid(z)), 0)[0],
    "sum of exponentials": lambda z: torch.log(torch.exp(torch.sigmoid(z)).sum()),
    "logarithm of a probability": lambda z: -torch.log(torch.sigmoid(z)).mean(),
}


@pytest.mark.parametrize("loss", WRONG.values(), ids=WRONG)
def test_a_sigmoid_of_a_sigmoid_is_found(loss: Callable[[Tensor], Tensor]) -> None:
    assert len(forms(loss)) == 1


@pytest.mark.parametrize("loss", HEALTHY.values(), ids=HEALTHY)
def test_one_sigmoid_is_quiet(loss: Callable[[Tensor], Tensor]) -> None:
    assert forms(loss) == []
