"""DDPM on a ring of eight Gaussians, epsilon prediction, ancestral sampling."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    timesteps: int = 100
    hidden: int = 96
    batch_size: int = 128
    epochs: int = 60
    lr: float = 2e-3
    seed: int = 0


def ring(n, seed):
    generator = torch.Generator().manual_seed(seed)
    k = torch.randint(0, 8, (n,), generator=generator)
    angle = k * (2 * math.pi / 8)
    centers = 1.4 * torch.stack([angle.cos(), angle.sin()], dim=1)
    return centers + 0.08 * torch.randn(n, 2, generator=generator)


class Denoiser(nn.Module):
    def __init__(self, hidden, timesteps):
        super().__init__()
        self.time = nn.Embedding(timesteps, hidden)
        self.inp = nn.Linear(2, hidden)
        self.body = nn.Sequential(
            nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
        )
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        return self.out(self.body(self.inp(x) + self.time(t)))


class Diffusion:
    def __init__(self, timesteps):
        self.T = timesteps
        scale = 1000 / timesteps
        self.betas = torch.linspace(scale * 1e-4, scale * 0.02, timesteps)
        self.alphas = 1.0 - self.betas
        self.alpha_bar = torch.cumprod(self.alphas, dim=0)

    def loss(self, model, x0, generator=None):
        t = torch.randint(0, self.T, (len(x0),), generator=generator)
        noise = torch.randn(x0.shape, generator=generator)
        a = self.alpha_bar[t].unsqueeze(1)
        xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
        return F.mse_loss(model(xt, t), noise)

    @torch.no_grad()
    def sample(self, model, n, generator):
        x = torch.randn(n, 2, generator=generator)
        for step in reversed(range(self.T)):
            t = torch.full((n,), step)
            eps = model(x, t)
            coef = self.betas[step] / (1 - self.alpha_bar[step]).sqrt()
            x = (x - coef * eps) / self.alphas[step].sqrt()
            if step > 0:
                x = x + self.betas[step].sqrt() * torch.randn(x.shape, generator=generator)
        return x


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    train, val = ring(3000, seed=1), ring(1000, seed=2)
    diffusion = Diffusion(cfg.timesteps)
    model = Denoiser(cfg.hidden, cfg.timesteps)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    for epoch in range(1, cfg.epochs + 1):
        model.train()
        for idx in torch.randperm(len(train)).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = diffusion.loss(model, train[idx])
            loss.backward()
            optimizer.step()
        if epoch % 20 == 0:
            model.eval()
            with torch.no_grad():
                val_loss = diffusion.loss(model, val, torch.Generator().manual_seed(3)).item()
            print(f"epoch {epoch:3d}  val loss {val_loss:.4f}")

    model.eval()
    samples = diffusion.sample(model, 1000, torch.Generator().manual_seed(4))
    radius = samples.norm(dim=1)
    print(f"energy distance to held-out data: {energy_distance(samples, val):.4f}")
    print(f"sample radius: mean {radius.mean():.3f}, std {radius.std():.3f}")


if __name__ == "__main__":
    main()
