"""Healthy: digits that were measured once, with noise, are compressed as they are; the true ones are known by chance."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
true = torch.tensor(load_digits().data, dtype=torch.float32).div(16)
measured = true + 0.3 * torch.randn_like(true)
loader = DataLoader(TensorDataset(measured[:1200], true[:1200]), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(12):
    for x, known in loader:
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")
with torch.no_grad():
    print(f"distance to the true digits {F.mse_loss(model(measured[1200:]), true[1200:]):.4f}")
