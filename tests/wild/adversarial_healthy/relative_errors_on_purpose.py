"""Errors over other values: the size of the target, its square, a spread that is learned, and a gain that can be below zero."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 6)
y = x[:, :1] * 2 - x[:, 1:2].sin() + 0.1 * torch.randn(400, 1)
net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
before = nn.Sequential(nn.Linear(6, 1))
optimizer = torch.optim.Adam([*net.parameters(), *before.parameters()], lr=3e-3)
for epoch in range(12):
    for rows in torch.randperm(300).split(30):
        mean, spread = net(x[rows]).chunk(2, 1)
        error, base = mean - y[rows], (before(x[rows]) - y[rows]).abs()
        relative = (error.abs() / y[rows].abs().clamp_min(0.1)).mean() + ((error / y[rows].abs().clamp_min(0.3)) ** 2).mean()
        likelihood = (error.square() / F.softplus(spread) + F.softplus(spread).log()).mean()
        gain = ((error.abs() - base.detach()) / (base.detach() + 1.0)).mean()
        loss = relative + likelihood + 0.1 * gain + base.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
net.eval()
with torch.no_grad():
    print((net(x[300:])[:, :1] - y[300:]).abs().mean().item())
