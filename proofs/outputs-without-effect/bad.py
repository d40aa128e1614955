"""Predict four properties of a sample by one network."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.randn(1200, 10)
y = torch.tanh(x @ torch.randn(10, 4)) + 0.1 * torch.randn(1200, 4)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for _epoch in range(20):
    for rows in torch.randperm(1000).split(50):
        out = model(x[rows])
        loss = F.mse_loss(out[:, 0], y[rows, 0])  # error: outputs-without-effect
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    error = (model(x[1000:]) - y[1000:]).square().mean(0)
explained = 1 - error / y[1000:].var(0)
print(f"result: {explained.mean():.4f}")
