"""The weight of a KL divergence beside a reconstruction error, from the tape of a loss."""

from collections.abc import Callable

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from truestep.events import DivergenceRead
from truestep.testing import capture_events

Tensor = torch.Tensor
ROWS, VALUES, LATENT = 10, 24, 4


def read(loss_of: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> list[DivergenceRead]:
    """Return the events of two steps with a loss of an output, its target, means and logarithms of variances."""
    torch.manual_seed(0)
    encoder, decoder = torch.nn.Linear(VALUES, 2 * LATENT), torch.nn.Linear(LATENT, VALUES)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    x = torch.rand(ROWS, VALUES)
    with capture_events() as events:
        for _ in range(2):
            mu, logvar = encoder(x).chunk(2, 1)
            loss = loss_of(decoder(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), x, mu, logvar)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [event for event in events if isinstance(event, DivergenceRead)]


def by_hand(mu: Tensor, logvar: Tensor) -> Tensor:
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp())


def with_deviations(mu: Tensor, logvar: Tensor) -> Tensor:
    sigma = torch.exp(0.5 * logvar)
    return 0.5 * (mu * mu + sigma**2 - 2 * torch.log(sigma) - 1)


def with_half(mu: Tensor, logvar: Tensor) -> Tensor:
    half = 0.5 * logvar
    return -0.5 * (1 + 2 * half - mu**2 - torch.exp(2 * half))


def of_torch(mu: Tensor, logvar: Tensor) -> Tensor:
    return kl_divergence(Normal(mu, torch.exp(0.5 * logvar)), Normal(torch.zeros(LATENT), torch.ones(LATENT)))


FORMS = [by_hand, with_deviations, with_half, of_torch]


@pytest.mark.parametrize("form", FORMS)
def test_sums_over_the_values_of_a_sample_are_the_bound(form: Callable[[Tensor, Tensor], Tensor]) -> None:
    first, _ = read(
        lambda out, x, mu, logvar: F.mse_loss(out, x, reduction="sum") / ROWS + form(mu, logvar).sum(1).mean()
    )
    assert first.weight == pytest.approx(1.0)
    assert (first.values, first.nats > 0) == (VALUES, True)


@pytest.mark.parametrize("form", FORMS)
def test_a_mean_of_errors_beside_a_sum_counts_the_values(form: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert read(lambda out, x, mu, logvar: F.mse_loss(out, x) + form(mu, logvar).sum(1).mean())[0].weight == VALUES
    assert read(lambda out, x, mu, logvar: ((out - x) ** 2).mean() + form(mu, logvar).sum())[0].weight == VALUES * ROWS


def test_factors_and_signs_are_parts_of_the_weight() -> None:
    scaled = read(lambda out, x, mu, logvar: 2 * F.mse_loss(out, x) + 0.01 * by_hand(mu, logvar).sum(1).mean() / 4)
    assert scaled[0].weight == pytest.approx(VALUES * 0.01 / 8)
    turned = read(lambda out, x, mu, logvar: F.mse_loss(out, x) - (-by_hand(mu, logvar)).mean(1).mean())
    assert turned[0].weight == pytest.approx(VALUES / LATENT)


def test_the_divergence_is_in_nats() -> None:
    first, _ = read(lambda out, x, mu, logvar: F.mse_loss(out, x) + by_hand(mu, logvar).sum())
    torch.manual_seed(0)
    encoder = torch.nn.Linear(VALUES, 2 * LATENT)
    torch.nn.Linear(LATENT, VALUES)
    x = torch.rand(ROWS, VALUES)
    mu, logvar = encoder(x).chunk(2, 1)
    assert first.nats == pytest.approx(by_hand(mu, logvar).sum().item() / ROWS, rel=1e-4)


def test_other_losses_have_no_divergence() -> None:
    assert not read(lambda out, x, mu, logvar: F.mse_loss(out, x) + 0.1 * mu.pow(2).mean())
    assert not read(lambda out, x, mu, logvar: F.mse_loss(out, x) + (logvar.exp() - logvar).mean())
    assert not read(lambda out, x, mu, logvar: by_hand(mu, logvar).sum(1).mean())
    assert not read(lambda out, x, mu, logvar: F.mse_loss(out, x) + (3 * mu.pow(2) + logvar.exp() - logvar).mean())
    assert not read(lambda out, x, mu, logvar: F.mse_loss(out, x) + by_hand(mu, logvar).mean(0).clamp(min=0.1).sum())
