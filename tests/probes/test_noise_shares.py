"""Shares of samples and noise in the input of a model: the variance of a diffusion process, and its deviation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from truestep.events import NoiseScaled
from truestep.testing import capture_events

KEPT = torch.cumprod(1 - torch.linspace(1e-3, 0.1, 50), 0)
DATA = torch.rand(500, 2, generator=torch.Generator().manual_seed(1)) * 3
PICTURES = torch.rand(100, 1, 6, 6, generator=torch.Generator().manual_seed(1))
Loss = Callable[[nn.Module, Tensor], Tensor]


class Denoiser(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size + 1, 16), nn.SiLU(), nn.Linear(16, size))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        flat = torch.cat([x.flatten(1), t.reshape(len(x), 1).expand(len(x), 1) / 50], 1)
        return self.net(flat).view_as(x)  # type: ignore[no-any-return]


def shares(x: Tensor) -> tuple[Tensor, Tensor]:
    t = torch.randint(0, 50, (len(x),))
    return t, KEPT[t].view(-1, *[1] * (x.dim() - 1))


def deviation(model: nn.Module, x: Tensor) -> Tensor:
    t, kept = shares(x)
    noise = torch.randn_like(x)
    noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
    return F.mse_loss(model(noisy, t), noise)


def variance(model: nn.Module, x: Tensor) -> Tensor:
    t, kept = shares(x)
    noise = torch.randn_like(x)
    noisy = kept.sqrt() * x + (1 - kept) * noise
    return F.mse_loss(model(noisy, t), noise)


def variance_in_a_function(model: nn.Module, x: Tensor) -> Tensor:
    def spread(x: Tensor, noise: Tensor) -> Tensor:
        return kept.sqrt() * x + (1 - kept) * noise

    t, kept = shares(x)
    eps = torch.randn_like(x)
    guess = model(x=spread(x, eps), t=t)
    return (guess - eps).pow(2).mean()


def variance_for_clean_samples(model: nn.Module, x: Tensor) -> Tensor:
    t, kept = shares(x)
    noise = torch.randn_like(x)
    return F.mse_loss(model(kept.sqrt() * x + (1 - kept) * noise, t), x)


def straight_path(model: nn.Module, x: Tensor) -> Tensor:
    t, start = torch.rand(len(x)).view(-1, *[1] * (x.dim() - 1)), torch.randn_like(x)
    return F.mse_loss(model((1 - t) * start + t * x, t), x - start)


def samples_at_their_scale(model: nn.Module, x: Tensor) -> Tensor:
    sigma, noise = torch.rand(len(x)).view(-1, *[1] * (x.dim() - 1)), torch.randn_like(x)
    return F.mse_loss(model(x + sigma * noise, sigma), noise)


def mixed_pairs(model: nn.Module, x: Tensor) -> Tensor:
    share, other = torch.rand(len(x)).view(-1, *[1] * (x.dim() - 1)), x.flip(0)
    return F.mse_loss(model(share * x + (1 - share) * other, share), share * x + (1 - share) * other)


def bridge(model: nn.Module, x: Tensor) -> Tensor:
    t, noise = torch.rand(len(x)).view(-1, *[1] * (x.dim() - 1)), torch.randn_like(x)
    return F.mse_loss(model((1 - t) * x + t.sqrt() * noise, t), noise)


def one_level(model: nn.Module, x: Tensor) -> Tensor:
    t, noise = torch.zeros(len(x)), torch.randn_like(x)
    return F.mse_loss(model(x + 0.0 * noise, t), noise)


def one_share(model: nn.Module, x: Tensor) -> Tensor:
    noise = torch.randn_like(x)
    return F.mse_loss(model(0.9 * x + 0.19 * noise, torch.zeros(len(x))), x)


def read(loss: Loss, data: Tensor) -> list[NoiseScaled]:
    torch.manual_seed(0)
    model = Denoiser(data[0].numel())
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with capture_events() as events:
        for _ in range(6):
            loss(model, data[torch.randint(len(data), (16,))]).backward()
            optimizer.step()
            optimizer.zero_grad()
    return [event for event in events if isinstance(event, NoiseScaled)]


@pytest.mark.parametrize("data", [DATA, PICTURES], ids=["points", "pictures"])
@pytest.mark.parametrize("loss", [variance, variance_in_a_function, variance_for_clean_samples])
def test_the_share_of_a_variance_is_found(loss: Loss, data: Tensor) -> None:
    found = read(loss, data)
    assert found
    assert all(event.wrong for event in found)


@pytest.mark.parametrize("data", [DATA, PICTURES], ids=["points", "pictures"])
def test_the_share_of_a_deviation_is_right(data: Tensor) -> None:
    assert {event.wrong for event in read(deviation, data)} == {False}


@pytest.mark.parametrize("data", [DATA, PICTURES], ids=["points", "pictures"])
@pytest.mark.parametrize("loss", [straight_path, samples_at_their_scale, mixed_pairs, bridge, one_level, one_share])
def test_other_mixtures_are_not_judged(loss: Loss, data: Tensor) -> None:
    assert read(loss, data) == []


def test_the_line_is_that_of_the_input() -> None:
    event = read(variance, DATA)[0]
    assert event.site is not None
    assert event.site.line == variance.__code__.co_firstlineno + 3
