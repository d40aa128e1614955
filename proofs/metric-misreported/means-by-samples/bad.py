"""Divide the sum of the mean errors of batches by the number of samples."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
x = torch.randn(1400, 10)
y = (x[:, :3].sum(1) + x[:, 3] * x[:, 4]).unsqueeze(1)
train = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=50, shuffle=True)
test = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=100)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
for _epoch in range(8):
    for inputs, targets in train:
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()
total = 0.0
with torch.no_grad():
    for inputs, targets in test:
        total += criterion(model(inputs), targets).item()
    error = total / len(test.dataset)  # error: metric-misreported
    truth = (model(x[800:]) - y[800:]).square().mean().item()
print(f"result: {abs(error - truth) / truth:.4f}")
