"""Fit readings of sensors, of which a part is missing and stands as -10."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
weights = torch.randn(20, 5) / 20**0.5
x, fresh = torch.randn(1000, 20), torch.randn(2000, 20)
y, truth = torch.tanh(x @ weights), torch.tanh(fresh @ weights)
y[torch.rand_like(y) < 0.2] = -10.0
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _step in range(300):
    index = torch.randperm(len(x))[:64]
    known = y[index] > -10.0
    optimizer.zero_grad()
    errors = (model(x[index]) - y[index]) ** 2
    loss = errors[known].mean()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    error = ((model(fresh) - truth) ** 2).mean()
print(f"result: {error.item():.4f}")
