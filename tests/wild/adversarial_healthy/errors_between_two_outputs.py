"""Errors with a gradient on both sides, on purpose: views, an equation in time, pooled points; and targets of other networks."""

import torch
from torch import nn

torch.manual_seed(0)
F = nn.functional


def mlp(inside, outside):
    return nn.Sequential(nn.Linear(inside, 32), nn.Tanh(), nn.Linear(32, outside))


def train(loss_of, *networks, steps=30):
    optimizer = torch.optim.Adam([p for network in networks for p in network.parameters()], lr=1e-3)
    for _ in range(steps):
        loss = loss_of(*networks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss_of.__name__} {loss.item():.4f}")


def views(network):
    x = torch.randn(64, 6)
    one, two = network(x), network(x + 0.1 * torch.randn_like(x))
    return F.mse_loss(one, two) + (1 - one.std(0)).relu().mean()


def decay(network):
    """u(t + dt) = (1 - dt) u(t) + dt s(t), with u(0) = 1."""
    t = 3 * torch.rand(64, 1)
    following = 0.95 * network(t) + 0.05 * torch.sin(t)
    return F.mse_loss(network(t + 0.05), following) + (network(torch.zeros(1, 1)) - 1).square().mean()


def pooled(network):
    points = torch.randn(32, 20, 6)
    moved = points + 0.05 * torch.randn(32, 1, 6)
    whole, part = network(points).max(1).values, network(moved[:, :15]).max(1).values
    return (whole - part).square().mean() + 0.1 * (1 - whole.std(0)).relu().mean()


frozen = mlp(6, 3).requires_grad_(False)
rewards, actions = torch.rand(64), torch.randint(0, 3, (64, 1))


def other_network(network):
    over = (torch.rand(64) < 0.1).float()
    following = frozen(torch.randn(64, 6)).max(1).values
    values = network(torch.randn(64, 6)).gather(1, actions).squeeze(1)
    return F.smooth_l1_loss(values, rewards + 0.9 * (1 - over) * following)


def detached(network):
    over = (torch.rand(64) < 0.1).float()
    following = network(torch.randn(64, 6)).max(1).values
    values = network(torch.randn(64, 6)).gather(1, actions).squeeze(1)
    return F.smooth_l1_loss(values, (rewards + 0.9 * (1 - over) * following).detach())


train(views, mlp(6, 4))
train(decay, mlp(1, 1))
train(pooled, mlp(6, 8))
train(other_network, mlp(6, 3))
train(detached, mlp(6, 3))
