"""A denoiser of small pictures in a class: the process takes the variance of the noise, and the cosine schedule is right."""

import math

import torch
from torch import nn

torch.manual_seed(2)


class Process:
    def __init__(self, steps=40):
        line = torch.linspace(0, 1, steps + 1)
        wave = torch.cos((line + 0.008) / 1.008 * math.pi / 2) ** 2
        self.kept = (wave / wave[0])[1:].clamp(1e-3, 0.999)

    def add_noise(self, x, steps, noise):
        kept = self.kept[steps].view(-1, 1, 1, 1)
        return torch.sqrt(kept) * x + (1.0 - kept) * noise


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(nn.Conv2d(2, 16, 3, padding=1), nn.GELU(), nn.Conv2d(16, 1, 3, padding=1))

    def forward(self, x, steps):
        level = (steps / 40).view(-1, 1, 1, 1).expand_as(x)
        return self.convs(torch.cat([x, level], dim=1))


pictures = torch.rand(256, 1, 8, 8).round() * 2 - 1
process, net = Process(), Denoiser()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(6):
    for batch in pictures[torch.randperm(256)].split(32):
        steps = torch.randint(0, 40, (len(batch),))
        eps = torch.randn_like(batch)
        noisy = process.add_noise(batch, steps, eps)  # error: noise-scaled-by-variance
        loss = (net(noisy, steps) - eps).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss:.3f}")
