"""Points on a ring made by a generator: two optimizers in a flat script, an average of the generator, a distance of moments."""

import copy
import math

import torch
from torch import nn

torch.manual_seed(4)


def real(n):
    angle = torch.randint(0, 8, (n,)) * (math.pi / 4)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
ema = copy.deepcopy(G).requires_grad_(False)
optim_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
optim_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
bce = nn.BCEWithLogitsLoss()
data = real(2000)


def quality(generator, n=500):
    generator.eval()
    with torch.no_grad():
        made = generator(torch.randn(n, 8))
        points = data[torch.randperm(len(data))[:n]]
        near = torch.cdist(made, points).min(dim=1).values.mean()
        cover = torch.cdist(points, made).min(dim=1).values.mean()
    generator.train()
    return near.item(), cover.item()


for step in range(400):
    points = data[torch.randint(0, len(data), (128,))]
    noise = torch.randn(128, 8)

    fake = G(noise).detach()
    d_loss = bce(D(points), torch.full((128, 1), 0.9)) + bce(D(fake), torch.zeros(128, 1))
    optim_d.zero_grad()
    d_loss.backward()
    optim_d.step()

    fake = G(noise)
    g_loss = bce(D(fake), torch.ones(128, 1))
    optim_g.zero_grad()
    g_loss.backward()
    optim_g.step()

    with torch.no_grad():
        for slow, fast in zip(ema.parameters(), G.parameters()):
            slow.mul_(0.98).add_(fast, alpha=0.02)
    if step % 100 == 99:
        near, cover = quality(ema)
        print(f"step {step} near {near:.4f} cover {cover:.4f}")
