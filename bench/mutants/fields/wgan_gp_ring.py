"""WGAN-GP that learns five points on a ring."""

import math

import torch
from torch import autograd, nn, optim


def real_batch(n):
    k = torch.randint(0, 5, (n,))
    angle = 2 * math.pi * k / 5
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


def mlp(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, 64), nn.LeakyReLU(0.1), nn.Linear(64, 64), nn.LeakyReLU(0.1), nn.Linear(64, n_out)
    )


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (grad,) = autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def main():
    torch.manual_seed(13)
    generator, critic = mlp(4, 2), mlp(2, 1)
    opt_g = optim.Adam(generator.parameters(), lr=3e-3, betas=(0.5, 0.9))
    opt_c = optim.Adam(critic.parameters(), lr=3e-3, betas=(0.5, 0.9))
    for step in range(1, 301):
        for _ in range(3):
            real = real_batch(128)
            with torch.no_grad():
                fake = generator(torch.randn(128, 4))
            penalty = gradient_penalty(critic, real, fake)
            c_loss = critic(fake).mean() - critic(real).mean() + 1.0 * penalty
            opt_c.zero_grad()
            c_loss.backward()
            opt_c.step()
        g_loss = -critic(generator(torch.randn(128, 4))).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        if step % 60 == 0:
            print(f"step {step} critic {c_loss.item():.4f} generator {g_loss.item():.4f} penalty {penalty.item():.4f}")
    generator.eval()
    with torch.no_grad():
        samples = generator(torch.randn(2000, 4))
        reference = real_batch(2000)
        distance = torch.cdist(samples, reference)
    print(
        f"sample to data {distance.min(dim=1).values.mean():.4f} data to sample {distance.min(dim=0).values.mean():.4f}"
    )
    angles = torch.arange(5) * 2 * math.pi / 5
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    share = (torch.cdist(samples, points).min(dim=1).values < 0.2).float().mean()
    print(f"share of samples close to a mode {share:.4f}")


main()
