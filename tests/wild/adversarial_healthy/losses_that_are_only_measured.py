"""Metrics with gradients on: of the same output, of the scaled output, now and then on other data, and inner losses."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(600, 6)
y = x[:, :2].sin() * 10 + 3
net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(80):
    rows = torch.randint(0, 500, (50,))
    out = net(x[rows])
    loss = F.mse_loss(out, (y[rows] - 3) / 10)
    absolute = F.l1_loss(out, (y[rows] - 3) / 10)
    scaled = F.l1_loss(out * 10 + 3, y[rows])
    largest = F.mse_loss(out[:, 0], (y[rows, 0] - 3) / 10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        with torch.no_grad():
            held_out = F.mse_loss(net(x[500:]), (y[500:] - 3) / 10)
        print(step, absolute.item(), scaled.item(), largest.item(), held_out.item())

for step in range(12):
    fast = [p.detach().clone().requires_grad_() for p in net.parameters()]
    hidden = torch.tanh(x[:50] @ fast[0].T + fast[1])
    inner = F.mse_loss(hidden @ fast[2].T + fast[3], y[:50] / 10)
    gradients = torch.autograd.grad(inner, fast)
    loss = F.smooth_l1_loss(net(x[:50]), y[:50] / 10) + 1e-3 * sum(g.square().sum() for g in gradients)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
