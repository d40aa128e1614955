"""The results of a model that a loss squashes wherever it reads them, in any form."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid, softplus

from truestep.events import LogitsRead
from truestep.testing import capture_events

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).float()


def read(loss: Callable[[Tensor], Tensor]) -> set[bool]:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(3):
            optimizer.zero_grad()
            loss(model(X)).backward()
            optimizer.step()
    return {event.squashed for event in events if isinstance(event, LogitsRead)}


LOGITS = {
    "function": lambda z: binary_cross_entropy_with_logits(z.squeeze(1), Y),
    "logarithms": lambda z: -(Y * logsigmoid(z[:, 0]) + (1 - Y) * logsigmoid(-z[:, 0])).mean(),
    "stable": lambda z: (z.clamp(min=0) - Y[:, None] * z + torch.log1p(torch.exp(-z.abs()))).mean(),
    "softplus": lambda z: (softplus(z) - z * Y[:, None]).mean(),
    "square": lambda z: (torch.sigmoid(z.view(-1)) - Y).square().mean(),
}
OTHERS = {
    "error": lambda z: (z[:, 0] - Y).square().mean(),
    "shifted": lambda z: -logsigmoid(z - 0.5).mean(),
    "ranked": lambda z: -logsigmoid(z[:8] - z[8:]).mean(),
    "penalty": lambda z: -logsigmoid(z).mean() + 0.1 * z.square().mean(),
    "gate": lambda z: (z * torch.sigmoid(z)).square().mean(),
    "scaled": lambda z: torch.sigmoid(4 * z).mean(),
    "product": lambda z: (softplus(z) + z * z).mean(),
}


@pytest.mark.parametrize("form", LOGITS)
def test_a_loss_of_logits_is_read(form: str) -> None:
    assert read(LOGITS[form]) == {True}


@pytest.mark.parametrize("form", OTHERS)
def test_another_loss_is_not(form: str) -> None:
    assert read(OTHERS[form]) == {False}


def test_a_loss_that_a_model_does_not_make_is_not_read() -> None:
    free = torch.zeros(4, requires_grad=True)
    assert read(lambda z: (X @ free).sigmoid().mean()) == set()
