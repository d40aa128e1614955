"""Corrupted samples that are the input of a model, and its target."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from tiers import only
from torch import Tensor, nn

from truestep.events import NoiseKept
from truestep.testing import capture_events

WAVES = torch.sin(torch.linspace(0, 6, 32) * (1 + 3 * torch.rand(200, 1, generator=torch.Generator().manual_seed(1))))
FIXED = 0.5 * torch.randn(200, 32, generator=torch.Generator().manual_seed(2))


class Hole(nn.Module):
    """Reads all places but the one that it predicts."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(32, 32))

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.weight * (1 - torch.eye(32)))


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 32))


def noise(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = clean + 0.5 * torch.randn_like(clean)
    return F.mse_loss(model(noisy), noisy)


def cut(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = (clean + 0.5 * torch.randn_like(clean)).clamp(-1, 1)
    return F.l1_loss(model(noisy), noisy)


def zeros(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    mask = (torch.rand(clean.shape) < 0.7).float()
    noisy = clean * mask
    return F.mse_loss(model(noisy), noisy)


def extremes(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = torch.where(torch.rand_like(clean) < 0.2, torch.randn_like(clean).sign(), clean)
    return F.mse_loss(model(noisy), noisy)


def right(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = clean + 0.5 * torch.randn_like(clean)
    return F.mse_loss(model(noisy), clean)


def right_by_hand(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = clean + 0.5 * torch.randn_like(clean)
    return ((model(noisy) - clean) ** 2).mean()


def little_noise(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = clean + 0.05 * torch.randn_like(clean)
    return F.mse_loss(model(noisy), noisy)


def between_levels(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows].round()
    x = clean + 0.9 * torch.rand_like(clean)
    return F.mse_loss(model(x), x)


def fixed_noise(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = clean + FIXED[rows]
    return F.mse_loss(model(noisy), noisy)


def new_samples(model: nn.Module, rows: Tensor) -> Tensor:
    clean = torch.sin(torch.linspace(0, 6, 32) * (1 + 3 * torch.rand(len(rows), 1)))
    noisy = clean + 0.5 * torch.randn_like(clean)
    return F.mse_loss(model(noisy), noisy)


def moved(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    x = clean.roll(int(torch.randint(1, 9, ())), 1)
    return F.mse_loss(model(x), x)


def mixed(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    x = 0.6 * clean + 0.4 * clean.flip(0)
    return F.mse_loss(model(x), x)


def columns_dropped(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    x = clean * (torch.rand(32) < 0.7)
    return F.mse_loss(model(x), x)


def also_compared(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = clean + 0.5 * torch.randn_like(clean)
    result = model(noisy)
    (result.detach() - clean).abs().mean()
    return F.mse_loss(result, noisy)


def two_terms(model: nn.Module, rows: Tensor) -> Tensor:
    clean = WAVES[rows]
    noisy = clean + 0.5 * torch.randn_like(clean)
    result = model(noisy)
    return F.mse_loss(result, noisy) + F.binary_cross_entropy_with_logits(result[:, :1], (rows > 99).float()[:, None])


def kept(loss: Callable[[nn.Module, Tensor], Tensor], build: Callable[[], nn.Module] = plain) -> list[NoiseKept]:
    torch.manual_seed(0)
    with capture_events() as events:
        model = build()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(110):
            value = loss(model, torch.randperm(200)[:64])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    return [event for event in events if isinstance(event, NoiseKept)]


@pytest.mark.parametrize(
    ("loss", "how"),
    only([(noise, "noise")], [(noise, "noise"), (cut, "noise"), (zeros, "zeros"), (extremes, "values")]),
)
def test_corrupted_targets_are_found(loss, how):
    (event,) = kept(loss)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert (event.how, event.clean) == (how, "clean")
    assert event.site is not None
    assert "_loss(model(noisy), noisy)" in lines[event.site.line - 1]
    assert event.made is not None
    assert lines[event.made.line - 1].startswith("    noisy =")


def train_by_hand() -> None:
    torch.manual_seed(0)
    model = plain()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(110):
        clean = WAVES[torch.randperm(200)[:64]]
        noisy = clean + 0.5 * torch.randn_like(clean)
        loss = ((model(noisy) - noisy) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_errors_that_are_computed_by_hand_are_found():
    with capture_events() as events:
        train_by_hand()
    (event,) = [event for event in events if isinstance(event, NoiseKept)]
    assert event.clean == "clean"


QUIET = [
    right,
    right_by_hand,
    little_noise,
    between_levels,
    fixed_noise,
    new_samples,
    moved,
    mixed,
    columns_dropped,
    also_compared,
    two_terms,
]


@pytest.mark.parametrize("loss", only([right, fixed_noise, also_compared], QUIET))
def test_other_targets_and_changes_are_not(loss):
    assert kept(loss) == []


def test_a_network_with_a_blind_spot_is_not():
    assert kept(noise, Hole) == []
