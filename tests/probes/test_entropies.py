"""Entropies of a policy in the loss of its policy gradient."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.distributions import Bernoulli, Categorical, Independent, MultivariateNormal, Normal
from torch.nn import functional as F

from truestep.probes.backward.policies.entropies import minimised_entropy

torch.manual_seed(0)
NET, SPREAD, VALUE = nn.Linear(4, 3), nn.Parameter(torch.zeros(3)), nn.Linear(4, 1)
X, GAINS, MASK = torch.randn(12, 4), torch.randn(12), (torch.arange(12) % 3 > 0).float()
POLICIES = {
    "logits": lambda: Categorical(logits=NET(X)),
    "shares": lambda: Categorical(probs=NET(X).softmax(1)),
    "normal": lambda: Independent(Normal(NET(X), SPREAD.exp()), 1),
    "softplus": lambda: Independent(Normal(NET(X), F.softplus(SPREAD)), 1),
    "several": lambda: MultivariateNormal(NET(X), scale_tril=torch.diag(SPREAD.exp())),
    "switches": lambda: Independent(Bernoulli(logits=NET(X)), 1),
}


def smaller(term, kind="logits", gains=GAINS):
    """Return whether a loss of a policy, with a term of it, makes the entropy smaller."""
    policy = POLICIES[kind]()
    chosen = policy.log_prob(policy.sample())
    loss = -(chosen * gains).mean() + 0.5 * F.mse_loss(VALUE(X).squeeze(1), GAINS) + term(policy)
    return minimised_entropy(loss.grad_fn)


@pytest.mark.parametrize("kind", POLICIES)
def test_the_sign_of_the_entropy_of_a_distribution_is_read(kind):
    assert smaller(lambda policy: 0.01 * policy.entropy().mean(), kind)
    assert smaller(lambda policy: 0.01 * (policy.entropy() * MASK).sum() / MASK.sum(), kind)
    assert not smaller(lambda policy: -0.01 * policy.entropy().mean(), kind)
    assert not smaller(lambda policy: 0.01 * -policy.entropy().mean(), kind)


def negative(policy):
    return (policy.probs * torch.log(policy.probs + 1e-8)).sum(1).mean()


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (lambda policy: -0.01 * negative(policy), True),
        (lambda policy: 0.01 * negative(policy), False),
        (lambda policy: torch.special.entr(policy.probs).sum(1).mean(), True),
        (lambda policy: -torch.special.xlogy(policy.probs, policy.probs).sum(1).mean(), True),
        (lambda policy: 0.01 * (policy.entropy().mean() - 0.3), False),
        (lambda policy: 0.01 * (policy.entropy() - 0.3).relu().mean(), False),
        (lambda policy: (policy.entropy().mean() - 0.3) ** 2, False),
        (lambda policy: policy.entropy().mean() * torch.zeros(()), False),
        (lambda policy: Categorical(logits=NET(X + 1)).entropy().mean(), False),
        (lambda policy: Categorical(probs=policy.probs.mean(0)).entropy(), False),
        (lambda policy: 0.1 * policy.entropy().mean() - Categorical(probs=policy.probs.mean(0)).entropy(), False),
    ],
)
def test_an_entropy_is_small_by_its_sign_only(term, expected):
    assert smaller(term) == expected


def test_weights_that_are_no_rewards_make_no_policy():
    assert smaller(lambda policy: policy.entropy().mean(), gains=GAINS.abs())
    assert not smaller(lambda policy: policy.entropy().mean(), "normal", gains=GAINS.abs())
    assert not smaller(lambda policy: policy.entropy().mean(), gains=MASK)
    assert not smaller(lambda policy: policy.entropy().mean(), gains=1.0)
    out = NET(X)
    losses = F.cross_entropy(out, torch.arange(12) % 3, reduction="none")
    assert not minimised_entropy(((losses * GAINS.abs()).mean() + entropy_of(out)).grad_fn)
    assert minimised_entropy(((losses * GAINS).mean() + entropy_of(out)).grad_fn)


def entropy_of(out):
    return -(out.softmax(1) * out.log_softmax(1)).sum(1).mean()


@pytest.mark.parametrize("sign", [-1, 1])
def test_steps_of_an_episode_have_a_term_each(sign):
    total = 0
    for row, gain in zip(X, GAINS, strict=True):
        policy = Categorical(logits=NET(row))
        total = total - policy.log_prob(torch.tensor(1)) * float(gain) + sign * 0.01 * policy.entropy()
    assert minimised_entropy(total.grad_fn) == (sign > 0)
    policies = [Categorical(logits=NET(row)) for row in X]
    chosen = torch.stack([policy.log_prob(torch.tensor(1)) for policy in policies])
    total = -(chosen * GAINS).sum() + sign * 0.01 * torch.stack([policy.entropy() for policy in policies]).sum()
    assert minimised_entropy(total.grad_fn) == (sign > 0)


def test_the_deviation_in_a_density_is_no_entropy():
    actions, total = torch.randn(12, 3), 0
    for row, action, gain in zip(X, actions, GAINS, strict=True):
        distance = (action - NET(row)) / SPREAD.exp()
        density = -0.5 * distance**2 - (SPREAD + 0.5 * math.log(2 * math.pi))
        total = total - density.sum() * float(gain)
    assert not minimised_entropy(total.grad_fn)
    entropy = (SPREAD + 0.5 * math.log(2 * math.pi * math.e)).sum()
    assert smaller(lambda _: 0.01 * entropy, "normal")
    assert not smaller(lambda _: -0.01 * entropy, "normal")
