"""Weights of log-probabilities that are sums of rewards, and their direction in time."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.distributions import Categorical

from truestep import events as ev
from truestep.testing import capture_events

ACTOR, STATES = nn.Linear(4, 3), torch.ones(24, 4)
ACTIONS = torch.arange(24) % 3
UNEVEN = [((7 * t) % 5) / 2 - 0.5 for t in range(24)]
EQUAL, COSTS = [1.0] * 24, [-0.1] * 23 + [1.0]


def togo(rewards, discount=0.9):
    total, found = 0.0, []
    for reward in reversed(rewards):
        total = reward + discount * total
        found.append(total)
    return torch.tensor(found).flip(0)


def until(rewards, discount=0.9):
    total, found = 0.0, []
    for reward in rewards:
        total = reward + discount * total
        found.append(total)
    return torch.tensor(found)


def whitened(x):
    return (x - x.mean()) / (x.std() + 1e-8)


def in_steps():
    return [Categorical(logits=ACTOR(one)).log_prob(action) for one, action in zip(STATES, ACTIONS, strict=True)]


def reads(rewards, returns, *, stacked=True, reverse=False):
    with capture_events() as events:
        logs = in_steps()
        if reverse:
            logs.reverse()
        if stacked:
            loss = -(torch.stack(logs) * returns).sum()
        else:
            loss = torch.stack([-one * gain for one, gain in zip(logs, returns, strict=True)]).sum()
        loss.backward()
    return [event.earlier for event in events if isinstance(event, ev.ReturnsFollowed)]


@pytest.mark.parametrize("rewards", [UNEVEN, EQUAL, COSTS])
@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("change", [whitened, lambda x: x])
def test_the_direction_of_the_sums(rewards, stacked, change):
    assert reads(rewards, change(togo(rewards)), stacked=stacked) == [False]
    assert reads(rewards, change(togo(rewards).flip(0)), stacked=stacked) == [True]
    assert reads(rewards, change(until(rewards)), stacked=stacked) in ([True], [] if rewards is COSTS else [True])


def test_log_probabilities_in_reverse_make_up_for_returns_in_reverse():
    assert reads(UNEVEN, togo(UNEVEN).flip(0), reverse=True) == [False]
    assert reads(UNEVEN, togo(UNEVEN), reverse=True) == [True]


def test_other_weights_are_no_sums():
    assert reads(UNEVEN, 0.9 ** torch.arange(24) * sum(UNEVEN)) == []
    assert reads(UNEVEN, torch.tensor(UNEVEN)) == []
    assert reads(UNEVEN, until([0.1 * one for one in UNEVEN])) == []  # an average that follows the rewards
    assert reads(EQUAL, torch.rand(24)) == []


def test_ends_of_episodes_do_not_hide_the_direction():
    rewards = UNEVEN[:12] + UNEVEN[:12]
    assert reads(rewards, torch.cat([togo(UNEVEN[:12]), togo(UNEVEN[:12])])) == [False]
    assert reads(rewards, torch.cat([until(UNEVEN[:12]), until(UNEVEN[:12])])) == [True]


def with_values(returns, values, rewards):
    with capture_events() as events:
        (-(torch.stack(in_steps()) * (returns - values)).sum()).backward()
    return [(event.earlier, event.name) for event in events if isinstance(event, ev.ReturnsFollowed)]


def test_returns_minus_values_count():
    values = torch.linspace(-1, 1, 24) ** 3
    assert with_values(togo(UNEVEN).flip(0), values, UNEVEN) == [(True, "returns")]


def of_environments(rewards, returns, reverse=False):
    with capture_events() as events:
        logs = [Categorical(logits=ACTOR(STATES[:4])).log_prob(ACTIONS[:4]) for _ in rewards]
        if reverse:
            logs.reverse()
        (-(torch.stack(logs) * torch.stack(returns)).mean()).backward()
    return [event.earlier for event in events if isinstance(event, ev.ReturnsFollowed)]


def test_several_environments():
    generator = torch.Generator().manual_seed(0)
    rewards = [torch.rand(4, generator=generator) for _ in range(10)]
    total, returns = torch.zeros(4), []
    for reward in rewards[::-1]:
        total = reward + 0.9 * total
        returns.append(total)
    assert of_environments(rewards, returns) == [True]
    assert of_environments(rewards, returns[::-1]) == [False]
    assert of_environments(rewards, returns, reverse=True) == [False]
