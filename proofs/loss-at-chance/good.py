"""Classify points of a data set that is shuffled once, before it is split."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
centres = 1.5 * torch.randn(5, 20)
y = torch.arange(5).repeat_interleave(280)
x, order = centres[y] + torch.randn(1400, 20), torch.randperm(1400)
x, y = x[order], y[order]
loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _epoch in range(14):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    accuracy = (model(x[800:]).argmax(1) == y[800:]).float().mean()
print(f"result: {accuracy.item():.4f}")
