"""Distances of weights from kept values in a loss, read at backward passes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from truestep import events as ev
from truestep.probes.context.sites import Sites
from truestep.testing import capture_events

PENALTIES = {
    "a power": lambda p, kept: ((p - kept) ** 2).sum(),
    "a square of the reversed difference": lambda p, kept: (kept - p).square().sum(),
    "a size": lambda p, kept: (p - kept).abs().mean(),
    "a norm": lambda p, kept: torch.norm(p - kept),
    "a squared error": lambda p, kept: F.mse_loss(p, kept),
    "a flat difference": lambda p, kept: (p.view(-1) - kept.view(-1)).pow(2).sum(),
}


@pytest.fixture(autouse=True)
def _no_other_files(monkeypatch):
    """Let the program be this file alone: other tests of the process have differences that are zero on purpose."""
    monkeypatch.setattr(Sites, "own_files", lambda sites: [__file__])


def reads(kept_of, penalty, steps=4, rate=0.1):
    """Return the events of a training with a penalty on the distance of the weight from a kept value."""
    torch.manual_seed(0)
    net, x = nn.Linear(4, 2, bias=False), torch.randn(16, 4)
    optimizer = torch.optim.SGD(net.parameters(), rate)
    kept = kept_of(net.weight)
    with capture_events() as events:
        for _ in range(steps):
            loss = net(x).square().mean() + penalty(net.weight, kept)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [event for event in events if isinstance(event, ev.DistancesRead)]


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_a_distance_from_the_weight_itself_is_always_zero(penalty):
    found = reads(lambda weight: weight.data, penalty)
    assert all(one.zero and not one.other for one in found)
    assert [one.live for one in found[:2]] == [False, True]


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_a_distance_from_a_copy_is_zero_at_first_alone(penalty):
    first, *later = reads(lambda weight: weight.detach().clone(), penalty)
    assert (bool(first.zero), first.live) == (True, False)
    assert all(one.other and not one.zero and not one.live for one in later)


def test_a_live_weight_beside_the_copy_is_not_what_is_compared():
    live = []

    def kept_of(weight):
        live.append(weight.data)
        return nn.Parameter(weight.detach().clone(), requires_grad=False)

    found = reads(kept_of, PENALTIES["a power"])
    assert (bool(found[0].zero), any(one.live for one in found), len(live)) == (True, False, 1)


def test_a_flat_copy_is_a_copy():
    kept = []

    def kept_of(weight):
        kept.extend([weight.data, torch.cat([torch.zeros(3), weight.detach().reshape(-1)])])
        return kept[1][3:].view_as(weight)

    assert not any(one.live for one in reads(kept_of, lambda p, kept: 0.0 * (p - kept).square().sum()))


def test_weights_that_do_not_move_are_not_followed():
    assert not any(one.live for one in reads(lambda weight: weight.data, PENALTIES["a power"], rate=0.0))


@pytest.mark.parametrize(
    "penalty",
    [
        lambda p, kept: p.square().sum(),
        lambda p, kept: (p[:1] - p[1:]).square().sum(),
        lambda p, kept: (p.sum() - 1).square(),
        lambda p, kept: (p.exp() - kept.exp()).square().sum(),
        lambda p, kept: F.kl_div(p.log_softmax(1), kept.softmax(1), reduction="sum"),
    ],
    ids=["size", "neighbours", "sum", "function", "divergence"],
)
def test_other_terms_have_no_distance_of_weights(penalty):
    assert reads(lambda weight: weight.detach().clone(), penalty) == []


def test_hooks_of_the_program_on_saved_tensors_are_not_called():
    calls = []

    def penalty(p, kept):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: calls.append(1) or t):
            return ((p - kept) ** 2).sum()

    assert reads(lambda weight: weight.data, penalty, steps=3) == []
    assert len(calls) == 3  # those of the backward passes
