"""DDPM on two moons: noise prediction, random timesteps in training and (fixed) in validation."""
import math
import torch
from sklearn.datasets import make_moons

torch.manual_seed(0)
x, _ = make_moons(2400, noise=0.05, random_state=1)
x = torch.tensor(x, dtype=torch.float32)
x_train, x_val = x[:2000], x[2000:]
mu, sd = x_train.mean(0), x_train.std(0)
x_train, x_val = (x_train - mu) / sd, (x_val - mu) / sd

T = 50
beta = torch.linspace(1e-3, 0.15, T)
alpha_bar = torch.cumprod(1 - beta, 0)
freqs = torch.exp(torch.linspace(0, math.log(50), 8))


def time_features(t):
    a = t[:, None].float() / T * freqs
    return torch.cat([a.sin(), a.cos()], 1)


P = [torch.randn(18, 96) * 0.25, torch.zeros(96), torch.randn(96, 96) * 0.1, torch.zeros(96), torch.randn(96, 2) * 0.02, torch.zeros(2)]
P = [p.requires_grad_() for p in P]


def eps_model(p, xt, t):
    h = torch.nn.functional.silu(torch.cat([xt, time_features(t)], 1) @ p[0] + p[1])
    h = h + torch.nn.functional.silu(h @ p[2] + p[3])
    return h @ p[4] + p[5]


def noise_to(x0, t, eps):
    a = alpha_bar[t][:, None]
    return a.sqrt() * x0 + (1 - a).sqrt() * eps


def loss_fn(p, x0, generator=None):
    t = torch.randint(T, (len(x0),), generator=generator)
    eps = torch.randn(x0.shape, generator=generator)
    return (eps_model(p, noise_to(x0, t, eps), t) - eps).pow(2).mean()


opt = torch.optim.Adam(P, lr=3e-3)
for epoch in range(25):
    for rows in torch.randperm(2000).split(100):
        loss = loss_fn(P, x_train[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 6 == 0:
        with torch.no_grad():
            val = loss_fn(P, x_val, torch.Generator().manual_seed(0)).item()
        print(f'epoch {epoch} train {loss.item():.3f} val {val:.3f}')


@torch.no_grad()
def sample(n):
    z = torch.randn(n, 2)
    for t in reversed(range(T)):
        e = eps_model(P, z, torch.full((n,), t))
        z = (z - beta[t] / (1 - alpha_bar[t]).sqrt() * e) / (1 - beta[t]).sqrt()
        if t:
            z = z + beta[t].sqrt() * torch.randn_like(z)
    return z


print('distance of samples to the data', round(torch.cdist(sample(300), x_val).min(1).values.mean().item(), 3))
