"""Healthy: DDPM on 2-D points: noise prediction with random timesteps, ancestral sampling without gradients."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SinusoidalEmbedding(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("freqs", torch.exp(-math.log(1000.0) * torch.arange(size // 2) / (size // 2 - 1)))

    def forward(self, t):
        a = t.float().unsqueeze(-1) * self.freqs
        return torch.cat([a.sin(), a.cos()], dim=-1)


class NoiseModel(nn.Module):
    def __init__(self, hidden=64, emb=16):
        super().__init__()
        self.time = SinusoidalEmbedding(emb)
        self.inp = nn.Linear(2 + emb, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = F.gelu(self.inp(torch.cat([x, self.time(t)], dim=-1)))
        h = h + F.gelu(self.mid(h))
        return self.out(h)


class NoiseScheduler:
    def __init__(self, num_timesteps=40, beta_start=1e-3, beta_end=0.2):
        self.num_timesteps = num_timesteps
        self.betas = torch.linspace(beta_start, beta_end, num_timesteps)
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, dim=0)

    def add_noise(self, x0, noise, t):
        s1 = self.alphas_cumprod[t].sqrt().unsqueeze(1)
        s2 = (1 - self.alphas_cumprod[t]).sqrt().unsqueeze(1)
        return s1 * x0 + s2 * noise

    def step(self, eps, t, x):
        mean = (x - self.betas[t] / (1 - self.alphas_cumprod[t]).sqrt() * eps) / self.alphas[t].sqrt()
        return mean if t == 0 else mean + self.betas[t].sqrt() * torch.randn_like(x)


def two_moons(n):
    t = math.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos()) - 0.5
    y = torch.where(upper, t.sin(), 0.5 - t.sin()) - 0.25
    return torch.stack([x / 0.87, y / 0.49], 1) + 0.03 * torch.randn(n, 2)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = two_moons(2048)
    loader = torch.utils.data.DataLoader(data, batch_size=256, shuffle=True, drop_last=True)
    model, noise_scheduler = NoiseModel(), NoiseScheduler()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(30):
        total = 0.0
        for batch in loader:
            noise = torch.randn_like(batch)
            timesteps = torch.randint(0, noise_scheduler.num_timesteps, (batch.shape[0],))
            noise_pred = model(noise_scheduler.add_noise(batch, noise, timesteps), timesteps)
            loss = F.mse_loss(noise_pred, noise)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        if epoch % 10 == 9:
            print(f"epoch {epoch} loss {total / len(loader):.4f}")

    model.eval()
    sample = torch.randn(400, 2)
    with torch.no_grad():
        for t in reversed(range(noise_scheduler.num_timesteps)):
            sample = noise_scheduler.step(model(sample, torch.full((400,), t)), t, sample)
    print("mean distance of samples to the data", round(torch.cdist(sample, data).min(1).values.mean().item(), 4))


main()
