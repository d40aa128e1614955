"""Fit a smooth function of eight inputs by regression."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(3000, 8)
y = 2 + torch.tanh(x @ torch.randn(8, 6) / 2) @ torch.randn(6) / 2
y = y + 0.1 * torch.randn(3000)
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for _epoch in range(12):
    for inputs, targets in loader:
        optimizer.zero_grad()
        predictions = model(inputs)
        loss = criterion(predictions, targets)  # error: broadcast-target
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    error = criterion(model(x[2000:]).squeeze(1), y[2000:]).item()
print(f"result: {error:.4f}")
