"""Evaluations beyond the range of training, on purpose: a sampler that begins with much noise, a test of extrapolation."""

import torch
from torch import nn

torch.manual_seed(0)
points = 0.2 * torch.randn(512, 2) + torch.tensor([0.5, -0.5])
levels = torch.logspace(-2, 1.3, 12)
denoiser = nn.Sequential(nn.Linear(3, 48), nn.SiLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(denoiser.parameters(), 3e-3)
for _ in range(120):
    x = points[torch.randint(512, (64,))]
    level = 0.05 * torch.exp(1.2 * torch.randn(64, 1))
    noisy = x + level * torch.randn_like(x)
    loss = (denoiser(torch.cat([noisy, level.log()], 1)) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
denoiser.eval()
sample = 20 * torch.randn(128, 2)
with torch.no_grad():
    for level, lower in zip(levels.flip(0)[:-1], levels.flip(0)[1:]):
        clean = denoiser(torch.cat([sample, level.log().expand(128, 1)], 1))
        sample = clean + (sample - clean) * lower / level
print(f"loss {loss.item():.3f}, mean of the samples {sample.mean().item():.2f}")

model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = 2 * torch.rand(200, 1) - 1
for _ in range(100):
    loss = nn.functional.mse_loss(model(x), x.sin())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    for name, reach in (("inside", 1.0), ("far outside", 8.0)):
        grid = torch.linspace(-reach, reach, 100)[:, None]
        print(f"{name}: error {(model(grid) - grid.sin()).abs().mean().item():.3f}")
