"""Rates by hand: a slow backbone beside a head with a course, a cycle, a part that waits at 0, and a late low end."""

import math

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(400, 8), torch.randint(0, 3, (400,))


def train(net, optimizer, rates, steps=120):
    for step in range(steps):
        for group, rate in zip(optimizer.param_groups, rates(step)):
            group["lr"] = rate
        rows = torch.randint(0, 400, (32,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(round(loss.item(), 4))


def build():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return net, [{"params": net[0].parameters()}, {"params": net[2].parameters()}]


net, groups = build()
train(net, torch.optim.Adam(groups, lr=1e-3), lambda step: (1e-3, 1e-2 * 0.97**step))
net, groups = build()
train(net, torch.optim.SGD(groups, lr=0.1), lambda step: (0.05 * (1 + math.cos(math.pi * (step % 30) / 30)),) * 2)
net, groups = build()
train(net, torch.optim.Adam(groups, lr=1e-2), lambda step: (0.0 if step < 80 else 1e-3, 1e-2))
net, groups = build()
train(net, torch.optim.Adam(groups, lr=1e-2), lambda step: (1e-2 * (1e-9 if step > 100 else 1),) * 2)
