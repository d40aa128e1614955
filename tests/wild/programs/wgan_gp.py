"""Healthy: WGAN-GP, five critic updates per generator update, gradient penalty with create_graph."""
import argparse

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--n_iters", type=int, default=30)
parser.add_argument("--n_critic", type=int, default=5)
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--latent_dim", type=int, default=4)
parser.add_argument("--lambda_gp", type=float, default=0.1)
parser.add_argument("--lr", type=float, default=1e-3)
opt = parser.parse_args()

np.random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(opt.latent_dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, z):
        return self.model(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.model(x)


def eight_gaussians(n):
    angle = 2 * np.pi * np.random.randint(0, 8, n) / 8
    pts = np.stack([np.cos(angle), np.sin(angle)], 1) + 0.05 * np.random.randn(n, 2)
    return torch.from_numpy(pts.astype(np.float32))


def compute_gradient_penalty(D, real, fake):
    alpha = torch.rand(real.size(0), 1)
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    d_interpolates = D(interpolates)
    gradients = autograd.grad(outputs=d_interpolates, inputs=interpolates,
                              grad_outputs=torch.ones_like(d_interpolates),
                              create_graph=True, retain_graph=True, only_inputs=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


generator, critic = Generator(), Critic()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(critic.parameters(), lr=opt.lr, betas=(0.5, 0.9))

for it in range(opt.n_iters):
    for _ in range(opt.n_critic):
        real = eight_gaussians(opt.batch_size)
        fake = generator(torch.randn(opt.batch_size, opt.latent_dim)).detach()
        optimizer_D.zero_grad()
        gp = compute_gradient_penalty(critic, real, fake)
        wdist = critic(real).mean() - critic(fake).mean()
        d_loss = -wdist + opt.lambda_gp * gp
        d_loss.backward()
        optimizer_D.step()

    optimizer_G.zero_grad()
    g_loss = -critic(generator(torch.randn(opt.batch_size, opt.latent_dim))).mean()
    g_loss.backward()
    optimizer_G.step()

    if it % 10 == 0:
        print(f"[{it}/{opt.n_iters}] W {wdist.item():.4f} GP {gp.item():.4f} G {g_loss.item():.4f}")

with torch.no_grad():
    sample = generator(torch.randn(1000, opt.latent_dim))
print("radius of samples", round(sample.norm(dim=1).mean().item(), 4))
