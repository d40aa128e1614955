"""Samples without a gradient of distributions that the loss reaches by another way."""

import pytest
import torch
from torch import nn
from torch.distributions import Independent, Normal, kl_divergence

from truestep.config import Options
from truestep.events import SampleUsed
from truestep.supervision import Session
from truestep.testing import capture_events


def used(draw, given=lambda z, x: z, loss=lambda q, z: kl_divergence(q, Normal(0.0, 1.0)).mean(), wide=3):
    """Return the events of three steps of an autoencoder."""
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(5, 6), nn.Linear(wide, 5)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    with capture_events() as events:
        for _ in range(3):
            x = torch.randn(8, 5)
            mean, scale = encoder(x).chunk(2, dim=1)
            q = Normal(mean, scale.exp())
            z = draw(q)
            total = (decoder(given(z, x)) - x).square().mean() + loss(q, z)
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
    return [event for event in events if isinstance(event, SampleUsed)]


def test_a_sample_that_a_decoder_gets_is_told_at_each_sampled_pass():
    events = used(lambda q: q.sample())
    assert len(events) == 3
    assert (events[0].kind, len(events[0].parameters)) == ("Normal", 2)


def test_a_sample_beside_other_columns():
    assert len(used(lambda q: q.sample(), given=lambda z, x: torch.cat([z, x], dim=1), wide=8)) == 3


def test_the_distribution_of_independent_rows():
    events = used(lambda q: Independent(q, 1).sample())
    assert {event.kind for event in events} == {"Independent"}


@pytest.mark.parametrize(
    ("draw", "loss"),
    [
        (lambda q: q.rsample(), lambda q, z: kl_divergence(q, Normal(0.0, 1.0)).mean()),
        (lambda q: q.sample(), lambda q, z: -q.log_prob(z).mean()),
        (lambda q: q.sample(), lambda q, z: 0.0),
        (lambda q: Normal(q.loc.detach(), q.scale.detach()).sample(), lambda q, z: q.loc.square().mean()),
    ],
    ids=["with a gradient", "a probability", "a loss of the decoder only", "detached on purpose"],
)
def test_other_samples(draw, loss):
    assert used(draw, loss=loss) == []


def drawn(draw, extra=lambda mean, scale, z: 0.0):
    """Return the events of three steps of an autoencoder with codes that a function draws."""
    torch.manual_seed(0)
    encoder, decoder, other = nn.Linear(5, 6), nn.Linear(3, 5), nn.Linear(3, 1)
    parts = nn.ModuleList([encoder, decoder, other])
    optimizer = torch.optim.SGD(parts.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(3):
            x = torch.randn(8, 5)
            mean, log_scale = encoder(x).chunk(2, dim=1)
            scale = log_scale.exp()
            z = draw(mean, scale)
            total = (decoder(z) - x).square().mean() + mean.square().mean() + scale.mean() + extra(mean, scale, other)
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
    return [event for event in events if isinstance(event, SampleUsed)]


def detached(mean, scale):
    return torch.normal(mean.detach(), scale.detach())


@pytest.mark.parametrize("draw", [lambda mean, scale: torch.normal(mean, scale), detached])
def test_samples_of_a_function(draw):
    events = drawn(draw)
    assert {event.kind for event in events} == {"torch.normal"}
    assert len(events) == 3


@pytest.mark.parametrize(
    "draw",
    [
        lambda mean, scale: mean + scale * torch.randn_like(scale),
        lambda mean, scale: torch.normal(mean, 0.1),
        lambda mean, scale: torch.normal(mean.detach() * 1, scale.detach() * 1),
        lambda mean, scale: torch.normal(0.0, 1.0, mean.shape),
    ],
)
def test_samples_of_a_function_without_a_trained_mean_and_spread(draw):
    assert drawn(draw) == []


def test_a_mean_that_another_trained_module_gets():
    assert drawn(detached, extra=lambda mean, scale, other: other(mean).mean()) == []


def test_samples_in_transforms_of_functions_are_passed_over():
    each = torch.func.vmap(torch.normal, randomness="different")

    def both(mean, scale):
        return torch.normal(mean, scale).sum() + Normal(mean, scale).sample().sum()

    def fixed(weight):
        grown = weight * 2
        return (torch.normal(torch.zeros(3), torch.ones(3)) * grown).sum()

    layer = nn.Linear(5, 6)
    with Session(Options()) as session:
        mean, scale = layer(torch.randn(8, 5)).chunk(2, dim=1)
        for one, other in [(mean, scale.exp()), (mean.detach(), scale.detach().exp())]:
            assert each(one, other).shape == (8, 3)
            assert torch.func.vmap(both, randomness="different")(one, other).shape == (8,)
        torch.func.grad(fixed)(torch.ones(3))
        mean.sum().backward()
    assert session.stop().internal_errors == ()
