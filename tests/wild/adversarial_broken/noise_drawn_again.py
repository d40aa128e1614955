"""Broken: noise is drawn for the input, and drawn again as the target."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
points = torch.tensor(make_moons(3000, noise=0.05, random_state=seed)[0], dtype=torch.float32)
points = (points - points[:2000].mean(0)) / points[:2000].std(0)
betas = torch.linspace(1e-4, 0.1, 60)
kept = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Sequential):
    def forward(self, x, t):
        return super().forward(torch.cat([x, t[:, None] / 30 - 1], 1))


model = Denoiser(nn.Linear(3, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(300):
    x, t = points[torch.randint(2000, (256,))], torch.randint(60, (256,))
    noise = torch.randn_like(x)  # error: noise-not-in-input
    noisy = kept[t, None].sqrt() * x + (1 - kept[t, None]).sqrt() * torch.randn_like(x)
    loss = F.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    x = torch.randn(1000, 2)
    for i in reversed(range(60)):
        guess = model(x, torch.full((1000,), i))
        x = (x - betas[i] / (1 - kept[i]).sqrt() * guess) / (1 - betas[i]).sqrt()
        x = x + betas[i].sqrt() * torch.randn_like(x) * (i > 0)
print(f"result: {torch.cdist(x, points[2000:]).min(1).values.mean():.4f}")
