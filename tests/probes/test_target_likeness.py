"""Correlation of the targets of a squared error with the input of the model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from truestep.events import TargetsTrained
from truestep.testing import capture_events


def likeness(target: Callable[[Tensor, Tensor], Tensor], columns: int = 4) -> list[float | None]:
    """Return the correlations for a target that is made from an input and the noise in it."""
    torch.manual_seed(0)
    model = nn.Linear(4, columns)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(3):
            noise = torch.randn(500, 4)
            noisy = 0.6 * torch.rand(500, 4) + 0.8 * noise
            F.mse_loss(model(noisy), target(noisy, noise)).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event.likeness for event in events if isinstance(event, TargetsTrained)]


def test_noise_in_the_input_is_like_it() -> None:
    assert all(one is not None and one > 0.9 for one in likeness(lambda noisy, noise: noise))


def test_noise_that_is_drawn_again_is_not() -> None:
    assert all(one is not None and abs(one) < 0.1 for one in likeness(lambda noisy, noise: torch.randn_like(noise)))


def test_targets_of_another_shape_and_constant_ones_are_not_compared() -> None:
    assert likeness(lambda noisy, noise: noise[:, :1], 1) == [None] * 3
    assert likeness(lambda noisy, noise: torch.ones_like(noise)) == [None] * 3
