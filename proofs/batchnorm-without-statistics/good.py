"""Classify noisy points on another scale, and evaluate an average of the weights."""

import copy
import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = 5 + 3 * torch.randn(3000, 10)
y = ((x - 5) @ torch.randn(10, 4)).argmax(1)
net = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
ema = copy.deepcopy(net).requires_grad_(False).eval()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

for _epoch in range(6):
    for rows in torch.randperm(2000).split(50):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
        with torch.no_grad():
            for average, weight in zip(ema.parameters(), net.parameters(), strict=True):
                average.lerp_(weight, 0.05)
            for average, buffer in zip(ema.buffers(), net.buffers(), strict=True):
                average.copy_(buffer)
    with torch.no_grad():
        accuracy = (ema(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
