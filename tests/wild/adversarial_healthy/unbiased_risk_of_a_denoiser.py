"""Healthy: Stein's unbiased estimate of the risk, an error to the noisy input plus the divergence of the network."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.manual_seed(0)
digits = torch.tensor(load_digits().data, dtype=torch.float32).div(16)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
size, small = 0.3, 1e-2
for _ in range(12):
    for clean in digits[torch.randperm(1200)].split(64):
        noisy = clean + size * torch.randn_like(clean)
        result = model(noisy)
        probe = torch.randn_like(noisy)
        divergence = (probe * (model(noisy + small * probe) - result)).mean() / small
        loss = (result - noisy).square().mean() - size**2 + 2 * size**2 * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")
