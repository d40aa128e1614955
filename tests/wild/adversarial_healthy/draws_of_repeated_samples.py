"""Dropout at test time by one call: each sample is repeated, and the mean and deviation of its results are taken."""

import torch
from torch import nn

generator = torch.Generator().manual_seed(0)
x = torch.rand(700, 1, generator=generator) * 4 - 2
y = x**3 / 4 + 0.1 * torch.randn(700, 1, generator=generator)
found = {}
for rate in (0.05, 0.2):
    torch.manual_seed(11)
    net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Dropout(rate), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(rate), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(120):
        rows = torch.randint(0, 500, (64,))
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.train()
    with torch.no_grad():
        draws = net(x[500:600].repeat(20, 1)).view(20, 100)
        others = net(x[600:].repeat_interleave(20, 0)).view(100, 20)
    found[rate] = ((draws.mean(0) - y[500:600, 0]) ** 2).mean().item(), ((others.mean(1) - y[600:, 0]) ** 2).mean().item()
for rate, (validation, test) in found.items():
    print(f"rate {rate}: validation {validation:.4f}, test {test:.4f}")
