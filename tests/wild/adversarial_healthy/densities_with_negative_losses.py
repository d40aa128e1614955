"""Healthy: losses below zero: a density of narrow data, sums of rewards, a similarity."""
import math

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 8))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(120):
    x = torch.rand(64, 3)
    y = x.sum(1, keepdim=True) + 0.001 * torch.randn(64, 4)
    mean, spread = net(x).chunk(2, 1)
    loss = -Normal(mean, nn.functional.softplus(spread) + 1e-3).log_prob(y).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"density {loss.item():.3f}")

control = nn.Linear(2, 1)
optimizer = torch.optim.SGD(control.parameters(), 1e-3)
for step in range(60):
    state, reward = torch.randn(32, 2), 0.0
    for time in range(10):
        state = state + 0.1 * torch.cat([state[:, 1:], control(state).tanh()], 1)
        reward = reward + 10 - state.square().sum(1)
    loss = -reward.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"control {loss.item():.3f}, {math.pi:.2f}")
