"""DDPM with a cosine schedule: an EMA copy of the network samples and is evaluated, the raw network trains; batches from randperm."""
import copy
import math

import torch
import torch.nn as nn
from sklearn.datasets import make_moons


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2)))

    def forward(self, t):
        angles = t[:, None].float() * self.freqs[None]
        return torch.cat([angles.sin(), angles.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, width=64, dim=16):
        super().__init__()
        self.time = TimeEmbedding(dim)
        self.net = nn.Sequential(nn.Linear(2 + dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=1))


class Diffusion:
    def __init__(self, steps=30):
        s = torch.linspace(0, 1, steps + 1)
        bar = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
        self.betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
        self.alphas = 1 - self.betas
        self.bars = self.alphas.cumprod(0)
        self.steps = steps

    def noisy(self, x0, t, eps):
        bar = self.bars[t][:, None]
        return bar.sqrt() * x0 + (1 - bar).sqrt() * eps

    def loss(self, model, x0):
        t = torch.randint(0, self.steps, (len(x0),))
        eps = torch.randn_like(x0)
        return nn.functional.mse_loss(model(self.noisy(x0, t, eps), t), eps)

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.steps)):
            t = torch.full((n,), i)
            eps = model(x, t)
            x = (x - self.betas[i] / (1 - self.bars[i]).sqrt() * eps) / self.alphas[i].sqrt()
            if i > 0:
                x = x + self.betas[i].sqrt() * torch.randn_like(x)
        return x


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for ema, p in zip(self.model.parameters(), model.parameters()):
            ema.mul_(self.decay).add_(p, alpha=1 - self.decay)


def main():
    torch.manual_seed(0)
    points = torch.tensor(make_moons(600, noise=0.05, random_state=0)[0], dtype=torch.float32)
    points = (points - points.mean(0)) / points.std(0)
    train, held_out = points[:500], points[500:]
    model, diffusion = Denoiser(), Diffusion()
    ema = EMA(model, 0.98)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(60):
        for index in torch.randperm(len(train)).split(100):
            loss = diffusion.loss(model, train[index])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            ema.update(model)
        if epoch % 20 == 19:
            with torch.no_grad():
                valid = sum(diffusion.loss(ema.model, held_out).item() for _ in range(5)) / 5
            print(f"epoch {epoch} loss {loss.item():.3f} validation of the average {valid:.3f}")
    samples = diffusion.sample(ema.model, 200)
    print(f"samples {samples.shape}, nearest training point at {torch.cdist(samples, train).min(1).values.mean():.3f}")


main()
