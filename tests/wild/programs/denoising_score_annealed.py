"""Denoising score matching over a ladder of noise levels, then annealed Langevin sampling, which needs no gradients."""
from dataclasses import dataclass, field

import torch
import torch.nn as nn


@dataclass
class Settings:
    sigmas: torch.Tensor = field(default_factory=lambda: torch.logspace(0.3, -1.3, 8))
    width: int = 64
    steps: int = 400
    batch: int = 128
    lr: float = 2e-3
    langevin_steps: int = 10


class ScoreNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.level = nn.Embedding(len(cfg.sigmas), cfg.width)
        self.inp = nn.Linear(2, cfg.width)
        self.mid = nn.Sequential(nn.Softplus(), nn.Linear(cfg.width, cfg.width), nn.Softplus())
        self.out = nn.Linear(cfg.width, 2)
        self.register_buffer("sigmas", cfg.sigmas)

    def forward(self, x, level):
        h = self.inp(x) + self.level(level)
        return self.out(self.mid(h)) / self.sigmas[level][:, None]


def spiral(n):
    t = torch.rand(n) * 9
    return torch.stack([t * t.cos(), t * t.sin()], dim=1) / 4.5 + 0.02 * torch.randn(n, 2)


def dsm_loss(net, x, cfg):
    level = torch.randint(0, len(cfg.sigmas), (len(x),))
    sigma = cfg.sigmas[level][:, None]
    noise = torch.randn_like(x)
    return (sigma * net(x + sigma * noise, level) + noise).pow(2).sum(1).mean() / 2


def train(net, cfg):
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    curve = []
    for _ in range(cfg.steps):
        loss = dsm_loss(net, spiral(cfg.batch), cfg)
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append(loss.detach())
    return torch.stack(curve)


@torch.no_grad()
def langevin(net, n, cfg):
    x = 2 * torch.randn(n, 2)
    for i, sigma in enumerate(cfg.sigmas):
        step = 0.1 * sigma ** 2
        level = torch.full((n,), i)
        for _ in range(cfg.langevin_steps):
            x = x + step * net(x, level) + (2 * step).sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(17)
cfg = Settings()
net = ScoreNet(cfg)
curve = train(net, cfg)
samples = langevin(net, 300, cfg)
print(f"loss {curve[:50].mean():.3f} -> {curve[-50:].mean():.3f}, distance to data {torch.cdist(samples, spiral(2000)).min(1).values.mean():.3f}")
