"""Classify points, with batches that are drawn by random indices."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
weights = torch.randn(20, 3)
x, fresh = torch.randn(1000, 20), torch.randn(2000, 20)
y, truth = (x @ weights).argmax(1), (fresh @ weights).argmax(1)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _step in range(300):
    index = torch.randperm(len(x))[:64]
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x[index]), y[:64])  # error: targets-of-other-samples
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    accuracy = (model(fresh).argmax(1) == truth).float().mean()
print(f"result: {accuracy.item():.4f}")
