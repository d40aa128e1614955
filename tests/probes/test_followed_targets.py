"""Targets on the tape: a reward and a discounted value of the next state, with or without a gradient."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from truestep import events as ev
from truestep.testing import capture_events

NET, OTHER = nn.Linear(4, 3), nn.Linear(4, 3)
X, R, OVER = torch.ones(8, 4), torch.ones(8), torch.tensor([0.0] * 6 + [1.0] * 2)
CHOSEN = torch.zeros(8, 1, dtype=torch.long)


def reads(loss_of):
    with capture_events() as events:
        for _ in range(2):
            values = NET(X).gather(1, CHOSEN).squeeze(1)
            loss = loss_of(values)
            loss.backward()
    return [event for event in events if isinstance(event, ev.TargetFollowed)]


def best(network=NET):
    return network(X).max(1).values


FOLLOWED = {
    "mask": lambda q: F.mse_loss(q, R + 0.9 * (1 - OVER) * NET(X)[:, 0]),
    "largest": lambda q: F.smooth_l1_loss(q, R + best() * 0.99),
    "other order": lambda q: F.mse_loss((1 - OVER) * 0.9 * best() + R, q),
    "filled": lambda q: F.huber_loss(q, R + 0.9 * best().masked_fill(OVER > 0, 0.0)),
    "where": lambda q: F.l1_loss(q, R + 0.9 * torch.where(OVER > 0, 0.0, best())),
    "by hand": lambda q: (q - (R + 0.9 * best())).pow(2).mean(),
    "product": lambda q: torch.mul(*[R + 0.9 * best() - q] * 2).mean(),
    "one of two terms": lambda q: 0.5 * (R + 0.9 * NET(X)[:, 1] * (OVER == 0) - q).abs().mean() - 0.1 * best().mean(),
    "a difference to zero": lambda q: F.huber_loss(R + 0.9 * best() - q, torch.zeros(8)),
    "chosen by index": lambda q: F.mse_loss(q, R + 0.9 * NET(X).gather(1, CHOSEN)[:, 0]),
    "least of two": lambda q: F.mse_loss(q, R + 0.9 * torch.minimum(NET(X)[:, 0], NET(X)[:, 1])),
}
CONSTANT = {
    "detached": lambda q: F.mse_loss(q, (R + 0.9 * best()).detach()),
    "by hand": lambda q: (q - R).square().mean(),
}
NOTHING = {
    "another network": lambda q: F.mse_loss(q, R + 0.9 * best(OTHER)),
    "no reward": lambda q: F.mse_loss(q, 0.9 * best()),
    "no discount": lambda q: F.mse_loss(q, R + best()),
    "neither choice nor mask": lambda q: F.mse_loss(q, R + 0.9 * NET(X)[:, 1]),
    "two outputs": lambda q: F.mse_loss(q, NET(2 * X)[:, 0]),
    "factors of another kind": lambda q: F.mse_loss(q, R + torch.linspace(0, 0.9, 8) * best()),
    "a difference of means": lambda q: q.mean() - (R + 0.9 * best()).mean(),
}


@pytest.mark.parametrize("loss_of", FOLLOWED.values(), ids=FOLLOWED)
def test_targets_with_a_gradient(loss_of):
    assert [event.gradient for event in reads(loss_of)] == [True, True]


@pytest.mark.parametrize("loss_of", CONSTANT.values(), ids=CONSTANT)
def test_targets_without_one(loss_of):
    assert [event.gradient for event in reads(loss_of)] == [False, False]


@pytest.mark.parametrize("loss_of", NOTHING.values(), ids=NOTHING)
def test_other_errors_say_nothing(loss_of):
    assert reads(loss_of) == []


def with_variables():
    values = NET(X)[:, 0]
    following = best()
    wanted = R + 0.9 * following
    F.mse_loss(values, wanted).backward()


def with_the_loss():
    loss = F.mse_loss(NET(X)[:, 0], R + 0.9 * best())
    loss.backward()


@pytest.mark.parametrize(("step", "name", "before"), [(with_variables, "following", 2), (with_the_loss, "", 1)])
def test_the_variable_nearest_to_the_model_is_named_else_the_loss(step, name, before):
    with capture_events() as events:
        step()
    (event,) = [event for event in events if isinstance(event, ev.TargetFollowed)]
    assert event.name == name
    assert event.made.line == event.site.line - before
