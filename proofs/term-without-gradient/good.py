"""Fit a regression with large targets; a penalty keeps the outputs of a second head small."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(512, 8)
y = x @ torch.randn(8, 1)
encoder = nn.Sequential(nn.Linear(8, 32), nn.Tanh())
head, second = nn.Linear(32, 1), nn.Linear(32, 1)
parameters = [*encoder.parameters(), *head.parameters(), *second.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-2)

for _step in range(300):
    hidden = encoder(x)
    fit = nn.functional.mse_loss(head(hidden) + second(hidden), y)
    penalty = second(hidden).square().mean()
    loss = fit + 10.0 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    size = second(encoder(x)).square().mean().item()
print(f"result: {size:.4f}")
