"""Classify noisy points, and evaluate an average of the weights."""

import copy
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(3000, 10)
y = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for _epoch in range(8):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        for old, new in zip(ema.parameters(), model.parameters(), strict=True):
            old.mul_(0.99).add_(new.detach(), alpha=0.01)
    with torch.no_grad():
        loss = nn.functional.cross_entropy(ema(x[2000:]), y[2000:]).item()
print(f"result: {loss:.4f}")
