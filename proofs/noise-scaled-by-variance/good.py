"""A diffusion model of digits, which are sampled and compared with held-out ones."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
digits = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
train, held = digits[:1400], digits[1400:]
betas = torch.linspace(1e-4, 0.06, 100)
kept = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Sequential):
    def forward(self, x, t):
        return super().forward(torch.cat([x, t[:, None] / 50 - 1], 1))


model = Denoiser(nn.Linear(65, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(3000):
    x, t = train[torch.randint(1400, (128,))], torch.randint(100, (128,))
    noise = torch.randn_like(x)
    noisy = kept[t, None].sqrt() * x + (1 - kept[t, None]).sqrt() * noise
    loss = F.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    x = torch.randn(400, 64)
    for i in reversed(range(100)):
        guess = model(x, torch.full((400,), i))
        x = (x - betas[i] / (1 - kept[i]).sqrt() * guess) / (1 - betas[i]).sqrt()
        x = x + betas[i].sqrt() * torch.randn_like(x) * (i > 0)
print(f"result: {torch.cdist(x, held).min(1).values.mean():.4f}")
