"""Noise that a model is to predict, next to the input that should contain it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from tiers import only
from torch import Tensor, nn

from truestep.events import NoiseCompared
from truestep.testing import capture_events

KEPT = torch.cumprod(1 - torch.linspace(1e-3, 0.1, 50), 0)
DATA = torch.rand(2_000, 8, generator=torch.Generator().manual_seed(1)) * 3


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.net(torch.cat([x, t.reshape(len(x), 1) / 50], 1))  # type: ignore[no-any-return]


def mixed(x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
    return KEPT[t, None].sqrt() * x + (1 - KEPT[t, None]).sqrt() * noise


def right(model: nn.Module, x: Tensor) -> Tensor:
    t = torch.randint(0, 50, (len(x),))
    noise = torch.randn_like(x)
    return F.mse_loss(model(mixed(x, t, noise), t), noise)


def drawn_in_the_loss(model: nn.Module, x: Tensor) -> Tensor:
    t = torch.randint(0, 50, (len(x),))
    noise = torch.randn_like(x)
    noisy = mixed(x, t, noise)
    return F.mse_loss(model(noisy, t), torch.randn_like(x))


def drawn_for_the_input(model: nn.Module, x: Tensor) -> Tensor:
    t = torch.randint(0, 50, (len(x),))
    noise = torch.randn(x.shape)
    noisy = mixed(x, t, torch.randn(x.shape))
    return F.mse_loss(input=model(noisy, t), target=noise)


def velocity(model: nn.Module, x: Tensor) -> Tensor:
    t = torch.randint(0, 50, (len(x),))
    noise = torch.randn_like(x)
    target = KEPT[t, None].sqrt() * noise - (1 - KEPT[t, None]).sqrt() * x
    return F.mse_loss(model(mixed(x, t, noise), t), target)


def flow(model: nn.Module, x: Tensor) -> Tensor:
    start, t = torch.randn_like(x), torch.rand(len(x))
    return F.mse_loss(model((1 - t[:, None]) * start + t[:, None] * x, t), x - start)


def random_targets(model: nn.Module, x: Tensor) -> Tensor:
    t = torch.zeros(len(x))
    target = torch.randn_like(x)
    return F.mse_loss(model(x, t), target)


def levels_that_the_model_does_not_need(model: nn.Module, x: Tensor) -> Tensor:
    group = torch.randint(0, 50, (len(x),))
    noise = torch.randn_like(x)
    noisy = x + 0.5 * noise  # one level, beside a condition
    return F.mse_loss(model(noisy, group), noise)


def little_noise(model: nn.Module, x: Tensor) -> Tensor:
    noise = torch.randn_like(x)
    noisy = x + 0.1 * noise
    return F.mse_loss(model(noisy, torch.zeros(len(x))), noise)


def pairs_of_levels(model: nn.Module, x: Tensor) -> Tensor:
    t, one, two = torch.randint(0, 50, (len(x),)), torch.randn_like(x), torch.randn_like(x)
    first, second = model(mixed(x, t, one), t), model(mixed(x, 49 - t, two), 49 - t)
    return F.mse_loss(first, one) + F.mse_loss(second, two)


def in_one_line(model: nn.Module, x: Tensor) -> Tensor:
    noise = torch.randn_like(x)
    return F.mse_loss(model(x + 0.05 * noise, torch.zeros(len(x))), noise)


def by_its_neighbour(model: nn.Module, x: Tensor) -> Tensor:
    noise = torch.randn_like(x)
    noisy = x.round() + noise.roll(1, 1)
    return F.mse_loss(model(noisy, torch.rand(len(x))), noise)


def clean_targets(model: nn.Module, x: Tensor) -> Tensor:
    return F.mse_loss(model(x + 0.3 * torch.randn_like(x), torch.zeros(len(x))), x)


def compared(loss: Callable[[nn.Module, Tensor], Tensor]) -> list[NoiseCompared]:
    torch.manual_seed(0)
    with capture_events() as events:
        model = Denoiser()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(400):
            value = loss(model, DATA[torch.randint(0, len(DATA), (256,))])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    return [event for event in events if isinstance(event, NoiseCompared)]


@pytest.mark.parametrize(
    ("loss", "line"),
    [
        (drawn_in_the_loss, "torch.randn_like(x))"),
        (drawn_for_the_input, "noise = torch.randn(x.shape)"),
    ],
)
def test_other_noise_is_found(loss, line):
    (event,) = compared(loss)
    assert event.site is not None
    assert line in Path(__file__).read_text(encoding="utf-8").splitlines()[event.site.line - 1]


QUIET = [
    right,
    velocity,
    flow,
    random_targets,
    levels_that_the_model_does_not_need,
    little_noise,
    pairs_of_levels,
    in_one_line,
    by_its_neighbour,
    clean_targets,
]


@pytest.mark.parametrize(
    "loss",
    only([right, random_targets, by_its_neighbour], QUIET),
)
def test_noise_of_the_input_and_other_targets_are_not_reported(loss):
    assert compared(loss) == []
