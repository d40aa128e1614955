"""Averages with shares that change: a running mean, a decay that warms up, one corrected for its start, hard copies."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 6)
y = x[:, :1] - x[:, 1:2]
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
mean, warm, corrected, hard, slow = (copy.deepcopy(net).requires_grad_(False) for _ in range(5))
sums = [torch.zeros_like(p) for p in net.parameters()]
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
done = 0
for epoch in range(12):
    for index in torch.randperm(300).split(30):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x[index]), y[index]).backward()
        optimizer.step()
        done += 1
        decay = min(0.99, (1 + done) / (10 + done))
        with torch.no_grad():
            for number, p in enumerate(net.parameters()):
                sums[number].mul_(0.9).add_(p, alpha=0.1)
                list(corrected.parameters())[number].copy_(sums[number] / (1 - 0.9**done))
            for a, b, c, p in zip(mean.parameters(), warm.parameters(), slow.parameters(), net.parameters(), strict=True):
                a.add_((p - a) / done)
                b.mul_(decay).add_(p, alpha=1 - decay)
                c.lerp_(p, 0.001)
            if done % 10 == 0:
                hard.load_state_dict(net.state_dict())
    with torch.no_grad():
        print([round(nn.functional.mse_loss(one(x), y).item(), 3) for one in (mean, warm, corrected, hard, slow)])
