"""Clipped ratios to old probabilities, over several updates."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.distributions import Categorical

from truestep.events import RatiosRead
from truestep.testing import capture_events


def read(before, *, passes=4, part=64, rate=1e-2, states=None, gains=None, rounds=3):
    """Return what is read of the ratios in a training.

    Args:
        before: function of the log-probabilities at the first, and at the current weights.
        passes: number of passes over samples.
        part: number of samples in a minibatch.
        rate: learning rate.
        states: function that makes states; random ones by default.
        gains: function of states and actions that makes weights.
        rounds: number of times that samples are drawn.
    """
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    with capture_events() as events:
        for _ in range(rounds):
            x = states() if states else torch.randn(64, 4)
            actions = Categorical(logits=net(x).detach()).sample()
            first = Categorical(logits=net(x)).log_prob(actions).detach()
            weights = gains(x, actions) if gains else x.gather(1, actions[:, None]).squeeze(1)
            for _ in range(passes):
                for rows in torch.randperm(64).split(part):
                    now = Categorical(logits=net(x[rows])).log_prob(actions[rows])
                    ratio = (now - before(first[rows], now.detach())).exp()
                    objective = torch.min(ratio * weights[rows], ratio.clamp(0.8, 1.2) * weights[rows])
                    optimizer.zero_grad()
                    (-objective.mean()).backward()
                    optimizer.step()
    return [(event.one, event.name) for event in events if isinstance(event, RatiosRead)]


def current(_, now):
    return now


def of_the_choice(first, _):
    return first


@pytest.mark.parametrize("part", [64, 16])
def test_ratios_to_the_current_weights_are_one_in_later_passes(part):
    found = read(current, part=part)
    assert len(found) >= 3
    assert set(found) == {(True, "ratio")}


def test_ratios_to_the_weights_of_the_choice_differ_from_one_and_are_read_no_more():
    assert read(of_the_choice) == [(False, "")]


def test_new_samples_for_each_update_are_no_evidence():
    assert read(current, passes=1, rounds=20) == []
    assert read(of_the_choice, passes=1, rounds=20) == []


def test_states_that_return_with_new_actions_settle_the_line():
    states = torch.randn(64, 4)
    assert read(current, passes=1, rounds=20, states=lambda: states) == [(False, "")]


def test_weights_that_stay_and_samples_that_cannot_be_told_apart_are_no_evidence():
    assert read(current, rate=0.0) == []
    assert read(current, states=lambda: torch.eye(4).repeat(16, 1)) == []
    assert read(current, gains=lambda x, actions: torch.ones(64)) == []
