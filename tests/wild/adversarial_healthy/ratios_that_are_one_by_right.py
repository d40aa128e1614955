"""Clipped ratios to the probabilities of this moment: each sample trains once, or its action is drawn for each update."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


def network(inputs, actions):
    return nn.Sequential(nn.Linear(inputs, 32), nn.Tanh(), nn.Linear(32, actions))


def clipped(after, before, gains):
    ratio = torch.exp(after - before)
    return -torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()


def one_update_for_each_rollout(rounds=60):
    """Push points to zero; the trainer allows several passes, of which one is used."""
    net, passes = network(2, 3), 1
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(rounds):
        place, kept = torch.randn(32), []
        for _ in range(4):
            state = torch.stack([place, place.abs()], 1)
            action = Categorical(logits=net(state).detach()).sample()
            place = place + 0.5 * (action - 1)
            kept.append((state, action, -place.abs()))
        states, actions, rewards = (torch.cat(one) for one in zip(*kept, strict=True))
        for _ in range(passes):
            after = Categorical(logits=net(states)).log_prob(actions)
            loss = clipped(after, after.detach(), rewards - rewards.mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return rewards.mean().item()


def table_of_contexts(epochs=40):
    """A bandit on a table: the contexts return in each epoch, with new actions."""
    contexts, best = torch.randn(256, 6), torch.randn(6, 4)
    net = network(6, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(epochs):
        for part in torch.randperm(256).split(64):
            policy = Categorical(logits=net(contexts[part]))
            actions = policy.sample()
            rewards = (contexts[part] @ best).gather(1, actions[:, None]).squeeze(1)
            after = policy.log_prob(actions)
            loss = clipped(after, after.detach(), rewards)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return rewards.mean().item()


def slow_start(rounds=12):
    """Use each rollout four times; the rate is zero in the first updates."""
    net = network(4, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.0 if step < 6 else min(1.0, step / 20))
    for _ in range(rounds):
        states = torch.randn(128, 4)
        with torch.no_grad():
            policy = Categorical(logits=net(states))
            actions = policy.sample()
            before = policy.log_prob(actions)
        gains = states.gather(1, actions[:, None]).squeeze(1)
        for _ in range(4):
            loss = clipped(Categorical(logits=net(states)).log_prob(actions), before, gains)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return loss.item()


print(one_update_for_each_rollout(), table_of_contexts(), slow_start())
