"""The loss function before a backward pass, its sign, and the signs of terms with a direction."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F

from truestep.probes.backward.signs import loss_function, turned_term

OUT, Y = torch.randn(6, 3, requires_grad=True), torch.randint(0, 3, (6,))
TWO = torch.tensor(2.0, requires_grad=True)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: F.cross_entropy(OUT, Y), ("NllLoss", False)),
        (lambda: -F.cross_entropy(OUT, Y), ("NllLoss", True)),
        (lambda: -F.cross_entropy(OUT, Y, reduction="none").mean() / 4, ("NllLoss", True)),
        (lambda: -(-0.5 * F.mse_loss(OUT, OUT.detach() + 1)), ("MseLoss", False)),
        (lambda: F.mse_loss(OUT, OUT.detach() + 1, reduction="none").sum() * -1, ("MseLoss", True)),
        (lambda: -F.l1_loss(OUT, OUT.detach() + 1), ("L1Loss", True)),
        (
            lambda: -F.binary_cross_entropy_with_logits(OUT, OUT.sigmoid().detach()),
            ("BinaryCrossEntropyWithLogits", True),
        ),
        (lambda: -((OUT - 1) ** 2).mean(), ("MseLoss", True)),
        (lambda: (1 - OUT).square().sum(), ("MseLoss", False)),
        (lambda: -((OUT - 1) ** 4).mean(), ("", False)),
        (lambda: -((OUT - OUT.roll(1)) ** 2).mean(), ("", False)),
        (lambda: -(OUT**2).mean(), ("", False)),
        (lambda: OUT.log_softmax(1)[torch.arange(6), Y].mean(), ("NllLoss", True)),
        (lambda: -OUT.log_softmax(1).gather(1, Y[:, None]).squeeze(1).mean(), ("NllLoss", False)),
        (lambda: (OUT.log_softmax(1)[torch.arange(6), Y] * torch.randn(6)).mean(), ("", False)),
        (lambda: F.nll_loss(OUT, Y), ("", False)),
        (lambda: -(F.cross_entropy(OUT, Y) + 0.1 * F.mse_loss(OUT, OUT.detach() + 1)), ("NllLoss", True)),
        (lambda: -F.cross_entropy(OUT, Y) - F.cross_entropy(OUT, Y) / 2, ("", False)),
        (lambda: F.cross_entropy(OUT, Y) + 0.5, ("NllLoss", False)),
        (lambda: -F.cross_entropy(OUT, Y) + F.mse_loss(OUT, OUT.detach() + 1), ("", False)),
        (lambda: -F.cross_entropy(OUT, Y) + OUT.square().mean(), ("", False)),
        (lambda: TWO * F.cross_entropy(OUT, Y), ("", False)),
        (lambda: -OUT.mean(), ("", False)),
    ],
)
def test_the_sign_of_a_loss_function_is_read(loss, expected):
    assert loss_function(loss().grad_fn) == expected


NET, ROWS = torch.nn.Linear(4, 3), torch.nn.Embedding(5, 4)
X, ACTIONS, GAINS = torch.randn(6, 4), torch.randint(0, 3, (6,)), torch.randn(6)


def policy(entropy, *, probabilities=False):
    """Return the loss of a policy, with a term that a function makes of its entropy."""
    made = {"probs": NET(X).softmax(-1)} if probabilities else {"logits": NET(X)}
    chosen = torch.distributions.Categorical(**made)
    return -(chosen.log_prob(ACTIONS) * GAINS).mean() + entropy(chosen.entropy())


def by_hand(sign):
    logarithms = NET(X).log_softmax(-1)
    entropy = -(logarithms.exp() * logarithms).sum(-1).mean()
    picked = logarithms.gather(1, ACTIONS[:, None]).squeeze(1)
    return -(picked * GAINS).mean() + sign * 0.01 * entropy


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: policy(lambda entropy: 0.01 * entropy.mean()), "entropy"),
        (lambda: policy(lambda entropy: 0.01 * entropy.mean(), probabilities=True), "entropy"),
        (lambda: by_hand(1), "entropy"),
        (lambda: policy(lambda entropy: -(0.01 * -entropy.mean())), "entropy"),
        (lambda: policy(lambda entropy: -0.01 * entropy.mean()), ""),
        (lambda: policy(lambda entropy: -0.01 * entropy.mean(), probabilities=True), ""),
        (lambda: policy(lambda entropy: 0.01 * (-entropy).sum()), ""),
        (lambda: by_hand(-1), ""),
        (lambda: policy(lambda _: torch.distributions.Categorical(logits=NET(X + 1)).entropy().mean()), ""),
        (lambda: F.cross_entropy(NET(X), ACTIONS) + 0.1 * by_hand_entropy(), ""),
    ],
)
def test_an_entropy_is_added_to_the_loss_of_its_own_policy(loss, expected):
    assert turned_term(loss().grad_fn) == expected


def by_hand_entropy():
    """Return the entropy of predictions, which is to be small without labels."""
    shares = NET(X).softmax(1)
    return -(shares * NET(X).log_softmax(1)).sum(1).mean()


def error():
    return F.mse_loss(NET(X), torch.zeros(6, 3))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: error() - 1e-3 * sum(one.pow(2).sum() for one in NET.parameters()), "weights"),
        (lambda: error() + -1e-3 * (NET.weight**2).mean(), "weights"),
        (lambda: error() - 1e-3 * NET.weight.norm(), "weights"),
        (lambda: error() - 1e-3 * NET.weight.abs().sum(), "weights"),
        (lambda: error() - 1e-3 * (NET.weight * NET.weight).sum(), "weights"),
        (lambda: error() - 1e-3 * sum(rows.pow(2).sum() for rows in (ROWS(ACTIONS), ROWS(ACTIONS))) / 6, "weights"),
        (lambda: error() + 1e-3 * sum(one.pow(2).sum() for one in NET.parameters()), ""),
        (lambda: -(1e-3 * -NET.weight.norm() - error()), ""),
        (lambda: error() - 1e-3 * (NET.weight - 1).pow(2).sum(), ""),
        (lambda: error() - 1e-3 * NET(X).pow(2).sum(), ""),
        (lambda: error() - 1e-3 * NET.bias.pow(2).sum(), ""),
        (lambda: error() * -NET.weight.norm().detach(), ""),
    ],
)
def test_the_size_of_weights_is_subtracted(loss, expected):
    assert turned_term(loss().grad_fn) == expected


def surrogate(extreme, sign):
    """Return the clipped loss of PPO for a sign of the objectives."""
    ratio = (torch.distributions.Categorical(logits=NET(X)).log_prob(ACTIONS) + 1.1).exp()
    return extreme(sign * GAINS * ratio, sign * GAINS * ratio.clamp(0.8, 1.2))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: surrogate(torch.min, -1).mean(), "ratio"),
        (lambda: -surrogate(torch.max, 1).mean() + error(), "ratio"),
        (lambda: surrogate(torch.max, -1).mean(), ""),
        (lambda: -surrogate(torch.min, 1).mean() + error(), ""),
        (lambda: (-surrogate(torch.min, 1)).mean(), ""),
        (lambda: torch.max(error(), torch.zeros(())), ""),
        (lambda: torch.min(NET(X).exp(), NET(X).exp().clamp(0.8, 1.2)).mean(), ""),
    ],
)
def test_the_more_favourable_of_two_ratios_is_taken(loss, expected):
    assert turned_term(loss().grad_fn) == expected


MIXED = torch.linspace(-2, 3, 18).view(6, 3)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: ((OUT - MIXED).abs() / MIXED).mean(), "quotient"),
        (lambda: 100 * ((OUT - MIXED) ** 2 / MIXED).sum() + error(), "quotient"),
        (lambda: (F.smooth_l1_loss(OUT, MIXED, reduction="none") / MIXED).mean(), "quotient"),
        (lambda: ((d := MIXED - OUT) * d / MIXED).mean(), "quotient"),
        (lambda: ((OUT - MIXED).abs() / MIXED.abs()).mean(), ""),
        (lambda: ((OUT - MIXED) / MIXED).abs().mean(), ""),
        (lambda: ((OUT - MIXED) / MIXED).mean(), ""),
        (lambda: ((OUT - MIXED).abs() / (MIXED + 1.9)).mean(), ""),
        (lambda: (OUT.abs() / MIXED).mean(), ""),
        (lambda: ((OUT - MIXED).abs() / MIXED[:1]).mean(), ""),
    ],
)
def test_errors_over_values_of_both_signs_are_read(loss, expected):
    assert turned_term(loss().grad_fn) == expected
