"""Broken: a denoising network of digits is compared with its noisy input, in a training by functions."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader

torch.manual_seed(0)
images = torch.tensor(load_digits().images, dtype=torch.float32).div(16).unsqueeze(1)
train, held_out = DataLoader(images[:1200], batch_size=64, shuffle=True), images[1200:]
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1), nn.Sigmoid())
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def add_noise(x, size=0.3):
    return (x + size * torch.randn_like(x)).clamp(0, 1)


def train_epoch():
    total = 0.0
    for clean in train:
        noisy = add_noise(clean)
        loss = criterion(model(noisy), noisy)  # error: reconstructs-the-noise
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * clean.size(0)
    return total / len(train.dataset)


for _ in range(12):
    print(f"{train_epoch():.4f}")
with torch.no_grad():
    print(criterion(model(add_noise(held_out)), held_out).item())
