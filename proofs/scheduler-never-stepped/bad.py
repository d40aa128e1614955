"""Fit a linear rule to noisy targets with a learning rate that falls to 0."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(1600, 30)
truth = torch.randn(30, 1)
y = x @ truth + 4.0 * torch.randn(1600, 1)
model = nn.Linear(30, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)  # error: scheduler-never-stepped

for _ in range(8):
    for rows in torch.randperm(1600).split(32):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()

with torch.no_grad():
    held_out = torch.randn(4000, 30)
    error = (model(held_out) - held_out @ truth).pow(2).mean().item()
print(f"result: {error:.4f}")
