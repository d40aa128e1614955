"""A denoising autoencoder of handwritten digits, which is compared with digits before the noise."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
digits = torch.tensor(load_digits().data, dtype=torch.float32) / 16
digits = digits[torch.randperm(len(digits))]
train, held_out = digits[:1400], digits[1400:]
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def corrupted(x):
    return x + 0.4 * torch.randn_like(x)


for _ in range(60):
    for clean in train[torch.randperm(len(train))].split(100):
        noisy = corrupted(clean)
        loss = F.mse_loss(model(noisy), noisy)  # error: reconstructs-the-noise
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    error = F.mse_loss(model(corrupted(held_out)), held_out)
print(f"result: {error / 0.16:.4f}")
