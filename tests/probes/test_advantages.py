"""Advantages on the tape: factors of log-probabilities, with and without a gradient to the values of the same loss."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.distributions import Bernoulli, Beta, Categorical, MultivariateNormal, Normal
from torch.nn import functional as F

from truestep import events as ev
from truestep.testing import capture_events

ACTOR, CRITIC, BOTH, OTHER = nn.Linear(4, 3), nn.Linear(4, 1), nn.Linear(4, 4), nn.Linear(4, 3)
X, R, ACTIONS = torch.ones(8, 4), torch.ones(8), torch.arange(8) % 3
MASK = torch.tensor([1.0] * 6 + [0.0] * 2)


def reads(loss_of):
    with capture_events() as events:
        for _ in range(2):
            loss_of(Categorical(logits=ACTOR(X)).log_prob(ACTIONS), CRITIC(X).squeeze(1)).backward()
    return [event for event in events if isinstance(event, ev.AdvantageFollowed)]


def whitened(x):
    return (x - x.mean()) / (x.std() + 1e-8)


def in_steps(logp, v):
    """Terms of each step, as in a loop over an episode."""
    policy = [-one * (1.0 - value) for one, value in zip(logp, v, strict=True)]
    return torch.stack(policy).sum() + torch.stack([F.smooth_l1_loss(one, R[0]) for one in v]).sum()


def with_traces(logp, v):
    gain, gains = torch.zeros(()), []
    for t in reversed(range(7)):
        gain = R[t] + 0.9 * v[t + 1].detach() - v[t] + 0.8 * gain
        gains.insert(0, gain)
    return -(logp[:7] * torch.stack(gains)).mean() + F.mse_loss(v, R)


def clipped(logp, v):
    ratio = (logp - logp.detach()).exp()
    gain = whitened(R - v)
    surrogate = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
    return -surrogate.mean() + 0.5 * (v - R).pow(2).mean()


def outputs_of_one_layer():
    logits, v = BOTH(X).split([3, 1], 1)
    gain = R - v.squeeze(1)
    return gain.square().mean() - (Categorical(logits=logits).log_prob(ACTIONS) * gain).mean()


def divided_ratio(v):
    chosen = ACTOR(X).softmax(1).gather(1, ACTIONS[:, None]).squeeze(1)
    return F.mse_loss(v, R) - (chosen / chosen.detach() * (R - v)).mean()


def with_full_covariance(v):
    policy = MultivariateNormal(ACTOR(X), torch.diag_embed(CRITIC.bias.exp().expand(8, 3)))
    return F.mse_loss(v, R) - (policy.log_prob(X[:, :3]) * (R - v)).mean()


FOLLOWED = {
    "mean": lambda logp, v: -(logp * (R - v)).mean() + F.mse_loss(v, R),
    "square of the advantage": lambda logp, v: ((v - R) * logp + 0.5 * (v - R) ** 2).mean(),
    "in steps": in_steps,
    "traces": with_traces,
    "clipped ratio": clipped,
    "mask": lambda logp, v: -(logp * (R - v) * MASK).sum() / MASK.sum() + F.huber_loss(v, R),
    "dot product": lambda logp, v: -(logp @ (R - v)) / 8 + F.mse_loss(v, R),
    "cross entropy": lambda _, v: (
        (F.cross_entropy(ACTOR(X), ACTIONS, reduction="none") * (R - v)).mean() + F.mse_loss(v, R)
    ),
    "logarithm of the softmax": lambda _, v: (
        -(ACTOR(X).softmax(1)[torch.arange(8), ACTIONS].log() * (R - v)).mean() + (R - v).square().sum()
    ),
    "normal": lambda _, v: -(Normal(ACTOR(X)[:, 0], 1.0).log_prob(R) * (R - v)).mean() + F.mse_loss(v, R),
    "normal by hand": lambda _, v: (
        (0.5 * ((R - ACTOR(X)[:, 0]) / CRITIC.bias.exp()).pow(2) * (R - v)).mean() + F.mse_loss(v, R)
    ),
    "critic called again": lambda logp, v: -(logp * (R - v)).mean() + F.mse_loss(CRITIC(X).squeeze(1), R),
    "one layer": lambda *_: outputs_of_one_layer(),
    "clipped advantage": lambda logp, v: -(logp * (R - v).clamp(-1, 1)).mean() + F.mse_loss(v, R),
    "divided ratio": lambda _, v: divided_ratio(v),
    "labels as vectors": lambda _, v: (
        -(F.one_hot(ACTIONS, 3).float() * ACTOR(X).log_softmax(1) * (R - v)[:, None]).sum(1).mean() + F.mse_loss(v, R)
    ),
    "full covariance": lambda _, v: with_full_covariance(v),
    "beta": lambda _, v: -(Beta(ACTOR(X)[:, 0].exp(), 1.0).log_prob(R / 2) * (R - v)).mean() + F.mse_loss(v, R),
    "bernoulli by hand": lambda _, v: (
        -((MASK * ACTOR(X)[:, 0].sigmoid() + 0.1).log() * (R - v)).mean() + F.mse_loss(v, R)
    ),
    "bernoulli": lambda _, v: -(Bernoulli(logits=ACTOR(X)[:, 0]).log_prob(MASK) * (R - v)).mean() + F.mse_loss(v, R),
}
CONSTANT = {
    "detached": lambda logp, v: -(logp * (R - v).detach()).mean() + F.mse_loss(v, R),
    "clipped ratio": lambda logp, v: -((logp - logp.detach()).exp() * R).mean() + F.mse_loss(v, R),
}


def skewed(v):
    residual = R - v
    return (residual**2 * residual).mean() + residual.pow(2).mean()


def times(v):
    scale, shape = F.softplus(ACTOR(X)[:, 0]), F.softplus(v)
    return ((shape - 1) * scale.log()).mean() + (shape - 1.5).pow(2).mean()


def long_times(v):
    scale = 5 * ACTOR(X)[:, 0].sigmoid()
    return ((v - torch.ones(8)) * scale.log()).mean() + F.mse_loss(v, R)


def in_a_divergence():
    one, two = ACTOR(X), OTHER(X)
    p, q = one.softmax(1), two.softmax(1)
    return ((p - q) * (one.log_softmax(1) - two.log_softmax(1))).sum(1).mean() + F.mse_loss(p, q)


def concentrations():
    alpha = OTHER(X) + 2
    return (alpha - 2).pow(2).mean() - ((alpha - 1) * ACTOR(X).log_softmax(1)).sum(1).mean()


NOTHING = {
    "a residual times its square": lambda _, v: skewed(v),
    "a shape of times": lambda _, v: times(v),
    "a scale that is a share times a number": lambda _, v: long_times(v),
    "a divergence of two networks": lambda *_: in_a_divergence(),
    "concentrations of shares": lambda *_: concentrations(),
    "the complement of a doubt": lambda _, v: (
        (F.cross_entropy(ACTOR(X), ACTIONS, reduction="none") * (R - v.sigmoid())).mean()
        + F.mse_loss(v.sigmoid(), MASK)
    ),
    "a multiplier by hand": lambda _, v: ((1 + ACTOR(X)[:, 0].exp()).log() * (v - R)).mean() + (v - R).pow(2).mean(),
    "products inside of a square": lambda logp, v: (logp * (R - v)).pow(2).mean() + F.mse_loss(v, R),
    "no error of the values": lambda logp, v: -(logp * (R - v)).mean(),
    "a value, not a difference": lambda logp, v: -(logp * v).mean() + F.mse_loss(v, R),
    "errors weighted by a variance": lambda _, v: ((R - v) ** 2 * (-ACTOR(X)[:, 0]).exp()).mean() + F.mse_loss(v, R),
    "a multiplier of a constraint": lambda _, v: (F.softplus(CRITIC.bias) * (v - R) + (v - R) ** 2).mean(),
    "entropy": lambda _, v: (ACTOR(X).softmax(1) * ACTOR(X).log_softmax(1)).sum() + F.mse_loss(v, R),
    "two heads that teach each other": lambda _, v: (
        -(v.sigmoid() * F.logsigmoid(ACTOR(X)[:, 0]) + (1 - v.sigmoid()) * F.logsigmoid(-ACTOR(X)[:, 0])).mean()
        + F.mse_loss(v.sigmoid(), R)
    ),
    "a temperature": lambda logp, v: (logp.exp() * (0.1 * logp - v)).mean() + F.mse_loss(v, R),
    "a log-probability that is regressed": lambda logp, v: (logp * (R - logp)).mean() + F.mse_loss(logp, R),
    "an action with a gradient": lambda _, v: (
        (Normal(ACTOR(X)[:, 0], 1.0).log_prob(ACTOR(2 * X)[:, 1]) * (R - v)).mean().detach() + F.mse_loss(v, R)
    ),
}


@pytest.mark.parametrize("loss", FOLLOWED.values(), ids=list(FOLLOWED))
def test_an_advantage_with_a_gradient_is_found(loss):
    found = reads(loss)
    assert len(found) == 2
    assert all(event.gradient for event in found)


@pytest.mark.parametrize("loss", CONSTANT.values(), ids=list(CONSTANT))
def test_one_without_a_gradient_is_seen_too(loss):
    assert {event.gradient for event in reads(loss)} == {False}


@pytest.mark.parametrize("loss", NOTHING.values(), ids=list(NOTHING))
def test_other_losses_are_quiet(loss):
    assert not any(event.gradient for event in reads(loss))


def with_variables():
    values = CRITIC(X).squeeze(1)
    gain = R - values
    scaled = whitened(gain)
    (F.mse_loss(values, R) - (F.logsigmoid(ACTOR(X)[:, 0]) * scaled).mean()).backward()


def test_the_variable_and_its_line_are_named():
    with capture_events() as events:
        with_variables()
    (event,) = [event for event in events if isinstance(event, ev.AdvantageFollowed)]
    assert event.name == "scaled"
    assert event.made.line == event.site.line - 1


def test_passes_that_do_not_reach_the_critic_are_quiet():
    def losses():
        v = CRITIC(X).squeeze(1)
        return F.mse_loss(v, R) - (Categorical(logits=ACTOR(X)).log_prob(ACTIONS) * (R - v)).mean()

    with capture_events() as events:
        losses().backward(inputs=list(ACTOR.parameters()))
        losses().backward(inputs=list(CRITIC.parameters()))
    assert [event.gradient for event in events if isinstance(event, ev.AdvantageFollowed)] == [True]
