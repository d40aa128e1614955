"""Similarities of unit vectors on the tape: the factor before a softmax that picks one of many."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from truestep import events as ev
from truestep.testing import capture_events

NET, OTHER = nn.Linear(6, 16), nn.Linear(6, 16)
X, PLACES, EYE = torch.randn(12, 6), torch.arange(12), torch.eye(12)
BANK = F.normalize(torch.randn(40, 16), dim=1)
SCALE = nn.Parameter(torch.tensor(0.1))
LABELS = PLACES % 3
SAME = (LABELS[:, None] == LABELS).float() * (1 - EYE)


def reads(loss_of):
    with capture_events() as events:
        for _ in range(2):
            loss_of().backward()
    return [event for event in events if isinstance(event, ev.SimilaritiesRead)]


def units(net=NET):
    return F.normalize(net(X), dim=1)


def pairs():
    return units() @ units(OTHER).T


def by_hand():
    a, b = NET(X), OTHER(X)
    a, b = a / a.norm(dim=1, keepdim=True), b / b.norm(dim=1, keepdim=True)
    return F.cross_entropy(0.1 * (a @ b.t()), PLACES)


def queue():
    a, b = units(), units(OTHER).detach()
    scores = torch.cat([(a * b).sum(1, keepdim=True), a @ BANK.T], 1) * 0.07
    return F.cross_entropy(scores, torch.zeros(12, dtype=torch.long))


def exponentials(factor):
    scores = torch.exp(pairs() * factor)
    return -(scores.diagonal() / scores.sum(1)).log().mean()


def logarithms(factor):
    scores = torch.exp(pairs() * factor)
    return (scores.sum(1).log() - scores.diagonal().log()).mean()


def difference(factor):
    scores = pairs() * factor
    return (torch.logsumexp(scores, 1) - scores.diagonal()).mean()


def supervised(factor):
    scores = units() @ units().T * factor
    scores = scores - scores.amax(1, keepdim=True).detach()
    logs = scores - (scores.exp() * (1 - EYE)).sum(1, keepdim=True).log()
    return -((SAME * logs).sum(1) / SAME.sum(1)).mean()


def masked():
    a = units()
    scores = (a @ a.T * 0.1).masked_fill(EYE.bool(), -1e9)
    return F.cross_entropy(scores, PLACES.roll(1))


def both_ways():
    scores = pairs() * 0.1
    return (F.cross_entropy(scores, PLACES) + F.cross_entropy(scores.T, PLACES)) / 2


SCALED_DOWN = {
    "product": lambda: F.cross_entropy(pairs() * 0.1, PLACES),
    "quotient": lambda: F.cross_entropy(pairs() * 0.05 / 0.5, PLACES),
    "norms by hand": by_hand,
    "queue": queue,
    "exponentials": lambda: exponentials(0.1),
    "logarithms of exponentials": lambda: logarithms(0.1),
    "logarithm of a sum": lambda: difference(0.1),
    "several positives": lambda: supervised(0.1),
    "mask": masked,
    "both ways": both_ways,
    "one-hot targets": lambda: -(EYE * (pairs() * 0.1).log_softmax(1)).sum(1).mean(),
    "diagonal": lambda: -(pairs() * 0.1).log_softmax(1).diagonal().mean(),
    "temperature beside the loss": lambda: 2 * 0.1 * F.cross_entropy(pairs() * 0.1, PLACES),
    "function of similarity": lambda: F.cross_entropy(
        0.1 * F.cosine_similarity(NET(X)[:, None], OTHER(X)[None], dim=2), PLACES
    ),
    "number as a tensor": lambda: F.cross_entropy(pairs() * torch.tensor(0.1), PLACES),
    "prototypes": lambda: F.cross_entropy(units() @ BANK.T * 0.1, PLACES),
}
RIGHT = {
    "temperature": lambda: F.cross_entropy(pairs() / 0.1, PLACES),
    "no temperature": lambda: F.cross_entropy(pairs(), PLACES),
    "exponentials": lambda: exponentials(5),
    "several positives": lambda: supervised(10),
    "logarithm of a sum": lambda: difference(10),
}


def soft(factor=0.1):
    target = (units(OTHER).detach() @ BANK.T * factor).softmax(1)
    return target, units() @ BANK.T * factor


def smooth_mean():
    return ((torch.logsumexp(0.1 * pairs(), 1) - 2.5) / 0.1 + 1 - (units() * units(OTHER)).sum(1)).mean()


def wide_kernel():
    a = units()
    return torch.exp((a @ BANK.T - 1) * 0.1).mean() - 2 * torch.exp((a @ a.T - 1) * 0.1).mean()


def two_soft_minima():
    scores = pairs()
    near = torch.log(1 + (torch.exp(-0.2 * scores) * EYE).sum(1)) / 0.2
    far = torch.log(1 + (torch.exp(0.2 * scores) * (1 - EYE)).sum(1)) / 0.2
    return (near + far).mean()


def even_use():
    scores = units() @ BANK.T * 0.1
    return (scores.softmax(1) * scores.log_softmax(1)).sum(1).mean()


def parts():
    a = F.normalize(NET(X).view(12, 8, 2), dim=2)
    bank = F.normalize(torch.randn(9, 8, 2), dim=2)
    return F.cross_entropy((a[:, None] * bank).sum((2, 3)) * 0.1, PLACES % 9)


def flattened_parts():
    a = F.normalize(NET(X).view(12, 8, 2), dim=2).view(12, 16)
    return F.cross_entropy(a @ BANK.T * 0.1, PLACES)


QUIET = {
    "a high temperature": lambda: F.cross_entropy(pairs() / 10, PLACES),
    "factor that is trained": lambda: F.cross_entropy(pairs() * SCALE, PLACES),
    "few classes": lambda: F.cross_entropy(units() @ BANK[:5].T * 0.1, PLACES % 5),
    "products without a length": lambda: F.cross_entropy(NET(X) @ BANK.T * 0.1, PLACES),
    "one length for a batch of a feature": lambda: F.cross_entropy(F.normalize(NET(X), dim=0) @ BANK.T * 0.1, PLACES),
    "soft targets": lambda: (lambda target, scores: F.cross_entropy(scores, target))(*soft()),
    "divergence of soft targets": lambda: (
        lambda target, scores: F.kl_div(scores.log_softmax(1), target, reduction="batchmean")
    )(*soft()),
    "even targets": lambda: F.cross_entropy(pairs() * 0.1, torch.full((12, 12), 1 / 12)),
    "entropy": even_use,
    "scores of another system": lambda: F.cross_entropy(pairs() * 0.1 + 4 * EYE, PLACES),
    "kernel": wide_kernel,
    "evenness": lambda: (-0.1 * (2 - 2 * pairs())).exp().mean().log(),
    "soft mean": smooth_mean,
    "hinge of a soft mean": lambda: (torch.logsumexp(0.1 * pairs(), 1) / 0.1).clamp(min=0).mean(),
    "two soft minima": two_soft_minima,
    "sums over parts": parts,
    "flattened parts": flattened_parts,
}


@pytest.mark.parametrize("loss", SCALED_DOWN.values(), ids=list(SCALED_DOWN))
def test_a_small_factor_is_found(loss):
    found = reads(loss)
    assert len(found) == 2
    assert all(event.factor < 0.101 and event.least > 0.9 for event in found)


@pytest.mark.parametrize("loss", RIGHT.values(), ids=list(RIGHT))
def test_a_temperature_is_seen_too(loss):
    found = reads(loss)
    assert len(found) == 2
    assert all(event.factor >= 1 and event.least < 0.6 for event in found)


@pytest.mark.parametrize("loss", QUIET.values(), ids=list(QUIET))
def test_other_losses_are_quiet(loss):
    assert reads(loss) == []


def test_masked_similarities_are_not_counted():
    assert {event.classes for event in reads(masked)} == {11}


def with_variables():
    scores = units() @ units(OTHER).T * 0.1
    F.cross_entropy(scores, PLACES).backward()


def test_the_line_of_the_similarities_is_named():
    with capture_events() as events:
        with_variables()
    (event,) = [event for event in events if isinstance(event, ev.SimilaritiesRead)]
    assert event.made.line == event.site.line - 1
    assert event.factor == pytest.approx(0.1)
