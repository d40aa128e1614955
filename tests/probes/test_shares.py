"""Losses with inputs and targets that sum to one along different dimensions, and those that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from truestep.events import ProbabilitiesRead
from truestep.testing import capture_events

WANTED = torch.randn(12, 5, generator=torch.Generator().manual_seed(1))
CLASSES = F.one_hot(torch.arange(12) % 5, 5).float()
Loss = Callable[[torch.Tensor], torch.Tensor]


def found(loss_of: Loss) -> set[str]:
    """Train a model with a loss; return the dimensions that its targets wrongly sum to one over."""
    torch.manual_seed(0)
    model = nn.Linear(4, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(5):
            optimizer.zero_grad()
            loss_of(model(torch.randn(12, 4))).backward()
            optimizer.step()
    return {event.over for event in events if isinstance(event, ProbabilitiesRead) and event.over}


@pytest.mark.parametrize(
    ("loss", "over"),
    [
        (lambda out: F.kl_div(out.log_softmax(1), WANTED.softmax(0), reduction="batchmean"), "samples"),
        (lambda out: F.kl_div(out.log_softmax(0), WANTED.softmax(1), reduction="batchmean"), "classes"),
        (lambda out: F.kl_div(out.log_softmax(1), WANTED.log_softmax(0), log_target=True, reduction="sum"), "samples"),
        (lambda out: F.cross_entropy(out, WANTED.softmax(0)), "samples"),
        (lambda out: F.mse_loss(out.softmax(1), WANTED.softmax(0)), "samples"),
        (lambda out: F.kl_div(out.log_softmax(1), out.softmax(0), reduction="batchmean"), "samples"),
    ],
)
def test_different_dimensions_are_found(loss: Loss, over: str) -> None:
    assert found(loss) == {over}


@pytest.mark.parametrize(
    "loss",
    [
        lambda out: F.kl_div(out.log_softmax(1), WANTED.softmax(1), reduction="batchmean"),
        lambda out: F.kl_div(out.log_softmax(0), WANTED.softmax(0), reduction="batchmean"),
        lambda out: F.cross_entropy(out, WANTED.softmax(1)),
        lambda out: F.cross_entropy(out, CLASSES / CLASSES.sum(0)),  # one-hot, weighted by class
        lambda out: F.mse_loss(out, WANTED.softmax(0)),
        lambda out: F.kl_div((out @ out.t()).log_softmax(1), (WANTED @ WANTED.t()).softmax(0), reduction="batchmean"),
    ],
)
def test_others_are_not(loss: Loss) -> None:
    assert found(loss) == set()
