"""A one-dimensional sampler trained by the energy distance: all pairs on purpose."""
import torch
from torch import nn

torch.manual_seed(0)
sampler = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(sampler.parameters(), lr=1e-2)
for step in range(40):
    fake = sampler(torch.randn(64, 2))
    real = torch.randn(64, 1) * 0.5 + 2.0
    cross = torch.cdist(fake, real).mean()
    within = torch.cdist(fake, fake).mean()
    loss = 2 * cross - within
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), fake.mean().item())
