"""Log-probabilities that a loss picks along another dimension than that of their softmax."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from truestep.events import PickedAcross
from truestep.testing import capture_events

DAYS, SHOPS, ORDERS = 6, 5, 4
X = torch.randn(DAYS, SHOPS, 3, generator=torch.Generator().manual_seed(0))
ACTIONS = torch.randint(ORDERS, (DAYS, SHOPS), generator=torch.Generator().manual_seed(1))
RETURNS = torch.linspace(-1, 1, DAYS * SHOPS).view(DAYS, SHOPS)


def picks(loss: Callable[[Tensor], Tensor]) -> list[tuple[int, int]]:
    w = torch.zeros(3, ORDERS, requires_grad=True)
    with capture_events() as events:
        loss(X @ w).backward()
    return [(event.over, event.along) for event in events if isinstance(event, PickedAcross)]


def policy(z: Tensor, dim: int) -> Tensor:
    taken = torch.log_softmax(z, dim).gather(-1, ACTIONS.unsqueeze(-1)).squeeze(-1)
    return -(taken * RETURNS).sum() / RETURNS.numel() + 0.1 * z.pow(2).mean()


def clipped(z: Tensor, dim: int) -> Tensor:
    taken = torch.softmax(z[0], dim).gather(1, ACTIONS[0, :, None])[:, 0].log()
    ratio = (taken - taken.detach()).exp()
    return -torch.min(ratio * RETURNS[0], ratio.clamp(0.8, 1.2) * RETURNS[0]).mean()


def last(z: Tensor) -> Tensor:
    ends = torch.arange(1, DAYS)[:, None, None].clamp(max=SHOPS - 1).expand(-1, -1, ORDERS)
    return -torch.log_softmax(z[1:], 2).gather(1, ends)[..., 0].mean()


HEALTHY = {
    "actions": lambda z: policy(z, -1),
    "ratio": lambda z: clipped(z, 1),
    "last place": last,
    "no softmax": lambda z: -z.gather(-1, ACTIONS.unsqueeze(-1)).mean(),
    "sampled places of all classes": lambda z: (
        -torch.log_softmax(z, 2).gather(1, ACTIONS[:, :2, None].expand(-1, -1, 4)).mean()
    ),
    "hard places of each class": lambda z: (
        -torch.log_softmax(z, 2).gather(1, (z + X[..., :1] * X[:, :1, 1:2]).topk(2, 1)[1]).mean()
    ),
    "one shop": lambda z: -torch.log_softmax(z[:, :1], 1).gather(-1, ACTIONS[:, :1, None]).mean() + z.mean(),
    "attention": lambda z: (torch.softmax(z, 1) * RETURNS[..., None]).sum(1).gather(-1, ACTIONS[:, :1]).mean(),
}


@pytest.mark.parametrize("loss", [lambda z: policy(z, 1), lambda z: policy(z, 0), lambda z: clipped(z, 0)])
def test_choices_across_the_softmax_are_found(loss: Callable[[Tensor], Tensor]) -> None:
    assert len(picks(loss)) == 1


@pytest.mark.parametrize("loss", HEALTHY.values(), ids=HEALTHY)
def test_choices_of_classes_and_places_are_quiet(loss: Callable[[Tensor], Tensor]) -> None:
    assert picks(loss) == []
