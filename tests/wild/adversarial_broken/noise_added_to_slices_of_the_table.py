"""Noise is added to slices of the table in place, so that it piles up from epoch to epoch."""

import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(512, 16)
Y = (X[:, :4].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for start in range(0, len(X), 64):
        x, y = X[start:start + 64], Y[start:start + 64]
        x += 0.2 * torch.randn_like(x)  # error: samples-change-between-passes
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
