"""Scores between the samples of a batch, with partners as classes."""

import torch
from torch.nn.functional import cross_entropy, normalize

from truestep.events import PartnersScored
from truestep.testing import capture_events

ROWS = 32


def scored(scores_of, partners, rows=ROWS):
    """Return the event of a cross entropy of scores that are made from the results of a model for two views."""
    torch.manual_seed(0)
    net = torch.nn.Linear(12, 16)
    x = torch.randn(rows, 12)
    one, other = (normalize(net(x + 0.3 * torch.randn(rows, 12)), dim=1) for _ in range(2))
    with capture_events() as events:
        scores = scores_of(one, other)
        cross_entropy(scores, partners).backward()
    found = [event for event in events if isinstance(event, PartnersScored)]
    return found[0] if found else None


def joined(one, other):
    both = torch.cat([one, other])
    return (both @ both.T / 0.2).masked_fill(torch.eye(len(both), dtype=torch.bool), float("-inf"))


HALVES = torch.arange(2 * ROWS).roll(ROWS)


def facts(event):
    return event.itself, event.other, event.symmetric, event.columns


def test_partners_in_the_other_half():
    assert facts(scored(joined, HALVES)) == (False, False, True, False)


def test_a_view_that_is_its_own_partner():
    assert facts(scored(lambda one, other: joined(one, one), HALVES)) == (True, False, True, False)
    first = torch.zeros(ROWS, dtype=torch.long)
    queue = normalize(torch.randn(64, 16), dim=1)

    def behind(one, other):
        return torch.cat([(one * one).sum(1, keepdim=True), one @ queue.T], dim=1)

    assert scored(behind, first).itself
    assert not scored(lambda one, other: behind((one + other) / 2, other), first).itself


def test_partners_that_are_others():
    assert facts(scored(joined, HALVES.flip(0))) == (False, True, True, False)
    assert facts(scored(lambda one, other: one @ other.T, torch.arange(ROWS).roll(1))) == (False, True, False, False)
    order = torch.randperm(ROWS)
    assert facts(scored(lambda one, other: one @ other[order].T, order.argsort())) == (False, False, False, False)


def test_vectors_that_are_normalised_over_the_samples():
    def wrong(one, other):
        return normalize(one, dim=0) @ normalize(other, dim=0).T / 0.2

    assert facts(scored(wrong, torch.arange(ROWS)))[3]
    assert not facts(scored(lambda one, other: normalize(one, dim=0).T @ other, torch.arange(16)))[3]


def test_other_cross_entropies():
    assert scored(lambda one, other: one @ torch.randn(16, 10), torch.randint(1, 10, (ROWS,))) is None
    assert scored(lambda one, other: one[:4] @ other[:4].T, torch.arange(4)) is None
