"""Norms of gradients in a penalty, from the tape of a loss."""

from collections.abc import Callable

import pytest
import torch

from truestep.events import PenaltyRead
from truestep.testing import capture_events

Tensor = torch.Tensor
Penalty = Callable[[Tensor], Tensor]
IMAGES = (6, 3, 8, 8)
CRITIC = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.LeakyReLU(0.2), torch.nn.Flatten(), torch.nn.Linear(144, 1)
)


def read(penalty: Penalty, rows: int = 6) -> list[str]:
    """Return what is read of the penalty in the loss of a critic, at two steps."""
    optimizer = torch.optim.SGD(CRITIC.parameters(), lr=1e-3)
    with capture_events() as events:
        for _ in range(2):
            images = torch.randn(rows, *IMAGES[1:], requires_grad=True)
            scores = CRITIC(images)
            (gradients,) = torch.autograd.grad(scores.sum(), images, create_graph=True)
            optimizer.zero_grad()
            (scores.mean() - CRITIC(torch.rand(rows, *IMAGES[1:])).mean() + 10 * penalty(gradients)).backward()
            optimizer.step()
    return [event.over for event in events if isinstance(event, PenaltyRead)]


@pytest.mark.parametrize(
    ("penalty", "over"),
    [
        (lambda g: ((g.norm(2, dim=1) - 1) ** 2).mean(), "position"),
        (lambda g: torch.relu(g.norm(dim=1) - 1).square().mean(), "position"),
        (lambda g: (1 - g.norm(dim=(2, 3))).square().sum(), "position"),
        (lambda g: (g.norm() - 1) ** 2, "batch"),
        (lambda g: ((g.flatten(1).norm(dim=1) - 1) ** 2).mean(), ""),
        (lambda g: (d := torch.linalg.vector_norm(g, dim=(1, 2, 3)) - 1).mul(d).mean(), ""),
    ],
)
def test_the_norm_of_a_penalty_is_read(penalty: Penalty, over: str) -> None:
    assert read(penalty) == [over, over]


@pytest.mark.parametrize(
    "penalty", [lambda g: g.square().sum((1, 2, 3)).mean(), lambda g: g.norm(dim=1).square().sum((1, 2)).mean()]
)
def test_squares_of_gradients_are_no_such_penalty(penalty: Penalty) -> None:
    assert read(penalty) == []


def test_one_sample_is_its_batch() -> None:
    assert read(lambda g: (g.norm() - 1) ** 2, rows=1) == ["", ""]


def test_norms_of_features_are_no_penalty_on_gradients() -> None:
    layer = torch.nn.Conv2d(3, 4, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
    with capture_events() as events:
        optimizer.zero_grad()
        ((layer(torch.randn(IMAGES)).norm(dim=1) - 1) ** 2).mean().backward()
        optimizer.step()
    assert not [event for event in events if isinstance(event, PenaltyRead)]
