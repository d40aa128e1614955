"""Forces from a normal distribution with a learned deviation, in functions: its entropy is added to the loss."""

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
mean = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
deviation = nn.Parameter(torch.zeros(2))
value = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*mean.parameters(), deviation, *value.parameters()], lr=3e-3)


def policy(states):
    return Normal(mean(states), deviation.exp())


def play(count):
    states = torch.randn(count, 2)
    forces = policy(states).sample()
    rewards = -(states.flip(1) - forces).square().sum(1) + 0.2 * torch.randn(count)
    return states, forces, rewards


def loss_of(states, forces, rewards, before):
    chosen = policy(states)
    judged = value(states).squeeze(1)
    gains = (rewards - judged).detach()
    ratio = torch.exp(chosen.log_prob(forces).sum(1) - before)
    objective = torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()
    spread = chosen.entropy().sum(1).mean()
    return -objective + 0.5 * (judged - rewards).pow(2).mean() + 0.02 * spread


for iteration in range(15):
    with torch.no_grad():
        states, forces, rewards = play(256)
        before = policy(states).log_prob(forces).sum(1)
    for _ in range(4):
        loss = loss_of(states, forces, rewards, before)
        optimizer.zero_grad()
        loss.backward()  # error: loss-maximised
        optimizer.step()
    if iteration % 5 == 4:
        print(iteration, round(rewards.mean().item(), 3), deviation.exp().tolist())
