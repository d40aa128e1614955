"""Targets in reinforcement learning at the rows that ended their episode."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from truestep import events as ev
from truestep.testing import capture_events

Batch = namedtuple("Batch", "state action reward after done")
GAMMA, ROWS, STEPS = 0.9, 32, 4


def walk(seed):
    """Transitions on a line of 8 cells that ends on both sides: cells as one-hot rows."""
    torch.manual_seed(seed)
    cells, actions = torch.randint(1, 7, (ROWS,)), torch.randint(2, (ROWS,))
    after = cells + 2 * actions - 1
    done = (after == 0) | (after == 7)
    done[:1], after[:1], cells[:1], actions[:1] = True, 7, 6, 1
    return Batch(torch.eye(8)[cells], actions, (after == 7).float(), torch.eye(8)[after], done)


def reads(update, batch=walk):
    torch.manual_seed(0)
    model, other = nn.Linear(8, 2), nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for step in range(STEPS):
            update(model, other, batch(step))
            optimizer.step()
            optimizer.zero_grad()
    return [(event.carried, event.name) for event in events if isinstance(event, ev.EndsRead)]


def plain(model, other, batch):
    state, action, reward, after, _done = batch
    best = other(after).detach().max(1).values
    wanted = reward + GAMMA * best
    F.mse_loss(model(state).gather(1, action[:, None]).squeeze(1), wanted).backward()


def as_argument(model, other, batch):
    state, action, reward, after, _terminated = batch
    with torch.no_grad():
        best = other(after).amax(1)
    F.smooth_l1_loss(model(state)[range(ROWS), action], reward + best * 0.99).backward()


def in_columns(model, other, batch):
    not_done = 1 - batch.done.float().unsqueeze(1)
    rewards = batch.reward.unsqueeze(1)
    wanted = rewards + GAMMA * other(batch.after).detach().max(1, keepdim=True)[0]
    wanted = wanted.view(not_done.shape)
    F.huber_loss(model(batch.state).gather(1, batch.action[:, None]), wanted).backward()


def by_hand(model, other, batch):
    held = {"state": batch.state, "reward": batch.reward, "after": batch.after, "done": batch.done.numpy()}
    del batch
    backup = (held["reward"] + GAMMA * other(held["after"]).max(1).values).detach()
    (model(held["state"])[:, 0] - backup).pow(2).mean().backward()


def attributes(model, other, batch):
    settings = SimpleNamespace(gamma=0.97)
    held = [batch.done.tolist()]
    wanted = batch.reward[:, None].squeeze(1) + settings.gamma * other(batch.after).detach().max(1).values
    F.mse_loss(model(batch.state)[:, 0], wanted).backward()
    held.clear()


def error_of(model, other, batch):
    state, action, reward, after, _done = batch
    wanted = reward + GAMMA * other(after).detach().max(1).values
    return F.mse_loss(model(state).gather(1, action[:, None]).squeeze(1), wanted)


def in_a_function(model, other, batch):
    error_of(model, other, batch).backward()


@pytest.mark.parametrize(
    ("update", "name"),
    [
        (in_a_function, "_done"),
        (plain, "_done"),
        (as_argument, "_terminated"),
        (in_columns, "not_done"),
        (by_hand, "held['done']"),
        (attributes, "batch.done"),
    ],
)
def test_values_past_the_end(update, name):
    found = reads(update)
    assert len(found) >= 2
    assert set(found) == {(True, name)}


def masked(model, other, batch):
    state, action, reward, after, done = batch
    wanted = reward + GAMMA * (1 - done.float()) * other(after).detach().max(1).values
    F.mse_loss(model(state).gather(1, action[:, None]).squeeze(1), wanted).backward()


def zeroed(model, other, batch):
    state, action, reward, after, done = batch
    best = other(after).detach().max(1).values
    best[done] = 0.0
    wanted = reward + GAMMA * best
    (model(state).gather(1, action[:, None]).squeeze(1) - wanted).pow(2).mean().backward()


def of_a_second_reward(model, other, batch):
    state, _action, reward, after, done = batch
    bonus = state.sum(1)
    wanted = reward + GAMMA * ~done * other(after).detach().max(1).values
    interest = bonus + GAMMA * other(after).detach().min(1).values
    result = model(state)
    (F.mse_loss(result[:, 0], wanted) + F.mse_loss(result[:, 1], interest)).backward()


@pytest.mark.parametrize("update", [masked, zeroed, of_a_second_reward])
def test_masked_values(update):
    assert set(reads(update)) == {(False, "")}


def replaced(model, other, batch):
    state, _action, reward, after, done = batch
    wanted = reward + GAMMA * other(after).detach().max(1).values
    chosen = torch.where(done, reward, wanted)
    (model(state)[:, 0] - chosen).pow(2).mean().backward()


def replaced_in_a_loss(model, other, batch):
    state, _action, reward, after, done = batch
    wanted = reward + GAMMA * other(after).detach().max(1).values
    chosen = torch.where(done, reward, wanted)
    F.mse_loss(model(state)[:, 0], chosen).backward()


def without_weight(model, other, batch):
    state, _action, reward, after, done = batch
    wanted = reward + GAMMA * other(after).detach().max(1).values
    (F.mse_loss(model(state)[:, 0], wanted, reduction="none") * (1 - done.float())).mean().backward()


def without_discount(model, other, batch):
    state, _action, reward, after, _done = batch
    wanted = reward - reward.mean() + other(after).detach().max(1).values
    F.mse_loss(model(state)[:, 0], wanted).backward()


def of_another_name(model, other, batch):
    state, _action, reward, after, _truncated = batch
    del batch
    wanted = reward + GAMMA * other(after).detach().max(1).values
    F.mse_loss(model(state)[:, 0], wanted).backward()


@pytest.mark.parametrize("update", [replaced, replaced_in_a_loss, without_weight, without_discount, of_another_name])
def test_other_values_are_quiet(update):
    assert reads(update) == []


def limited(seed):
    """Transitions that a limit of time has ended, at any cell."""
    batch = walk(seed)
    return batch._replace(done=torch.rand(ROWS) < 0.2)


def moving(seed):
    """Transitions of a point that a limit of time has ended, at any place."""
    torch.manual_seed(seed)
    state = torch.randn(ROWS, 8)
    after = state + 0.1 * torch.randn(ROWS, 8)
    return Batch(state, torch.randint(2, (ROWS,)), after[:, 0].clone(), after, torch.rand(ROWS) < 0.2)


@pytest.mark.parametrize("batch", [limited, moving])
def test_a_limit_of_time_is_quiet(batch):
    assert reads(plain, batch) == []


def falling(seed):
    """Transitions of a point that ends outside of a ball."""
    batch = moving(seed)
    return batch._replace(done=batch.after.norm(dim=1) > 3.2)


def leaving(seed):
    """Transitions of a point that ends at two sides."""
    batch = moving(seed)
    return batch._replace(done=batch.after[:, 3].abs() > 1.3)


def test_an_end_on_two_sides_of_a_column_is_found():
    assert set(reads(plain, leaving)) == {(True, "_done")}


def test_an_end_that_columns_and_neighbours_do_not_show_is_quiet():
    assert reads(plain, falling) == []
