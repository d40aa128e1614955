# %% [markdown]
# # A small class-conditional DDPM on 2-D points
# Two interleaved moons with a label; an MLP predicts the noise.
# We judge the samples by the energy distance to held-out points.

# %%
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons

torch.manual_seed(42)

# %% data: standardise with the training part
points, labels = make_moons(n_samples=2800, noise=0.06, random_state=0)
points = torch.tensor(points, dtype=torch.float32)
labels = torch.tensor(labels, dtype=torch.long)
train_x, test_x = points[:2000], points[2000:]
train_y, test_y = labels[:2000], labels[2000:]
mu, sigma = train_x.mean(dim=0), train_x.std(dim=0)
train_x = (train_x - mu) / sigma

# %% noise schedule (cosine, Nichol & Dhariwal)
T = 40
s = 0.008
grid = torch.linspace(0, 1, T + 1)
f = torch.cos((grid + s) / (1 + s) * math.pi / 2) ** 2
alpha_bar_full = f / f[0]
betas = (1 - alpha_bar_full[1:] / alpha_bar_full[:-1]).clamp(max=0.999)
alphas = 1.0 - betas
alpha_bar = torch.cumprod(alphas, dim=0)
alpha_bar_prev = torch.cat([torch.ones(1), alpha_bar[:-1]])
posterior_var = betas * (1 - alpha_bar_prev) / (1 - alpha_bar)


def q_sample(x0, t, noise):
    a = alpha_bar[t].unsqueeze(1)
    return a.sqrt() * x0 + (1 - a).sqrt() * noise


# %% model
NULL = 2        # the "no class" label, for classifier-free guidance


class Denoiser(nn.Module):
    def __init__(self, width=80, tdim=32):
        super().__init__()
        self.tdim = tdim
        self.label = nn.Embedding(3, tdim)
        self.inp = nn.Linear(2 + 2 * tdim, width)
        self.mid = nn.ModuleList(nn.Linear(width + 2 * tdim, width) for _ in range(2))
        self.out = nn.Linear(width, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def time_embedding(self, t):
        half = self.tdim // 2
        freqs = torch.exp(-math.log(1000) * torch.arange(half) / half)
        angle = t.float().unsqueeze(1) * freqs
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    def forward(self, x, t, y):
        cond = torch.cat([self.time_embedding(t), self.label(y)], dim=1)
        h = F.silu(self.inp(torch.cat([x, cond], dim=1)))
        for layer in self.mid:
            h = h + F.silu(layer(torch.cat([h, cond], dim=1)))
        return self.out(h)


model = Denoiser()
ema = Denoiser()
ema.load_state_dict(model.state_dict())
ema.requires_grad_(False)


@torch.no_grad()
def update_ema(decay):
    for p_ema, p in zip(ema.parameters(), model.parameters()):
        p_ema.mul_(decay).add_(p, alpha=1 - decay)


# %% training
steps, batch, warmup = 900, 160, 80
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda i: min(1.0, (i + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * i / steps)))

running = 0.0
for step in range(1, steps + 1):
    idx = torch.randint(0, len(train_x), (batch,))
    x0, y = train_x[idx], train_y[idx].clone()
    y[torch.rand(batch) < 0.15] = NULL
    t = torch.randint(0, T, (batch,))
    noise = torch.randn_like(x0)
    x_t = q_sample(x0, t, noise)
    loss = F.mse_loss(model(x_t, t, y), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    update_ema(min(0.99, (1 + step) / (10 + step)))
    running += loss.item()
    if step % 300 == 0:
        print(f"step {step} loss {running / 300:.5f}")
        running = 0.0


# %% sampling
@torch.no_grad()
def sample(net, y, guidance=0.2, seed=1):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(len(y), 2, generator=g)
    none = torch.full_like(y, NULL)
    for i in reversed(range(T)):
        t = torch.full((len(y),), i)
        cond, free = net(x, t, y), net(x, t, none)
        eps = cond + guidance * (cond - free)
        mean = (x - betas[i] / (1 - alpha_bar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            mean = mean + posterior_var[i].sqrt() * torch.randn(len(y), 2, generator=g)
        x = mean
    return x * sigma + mu


def energy_distance(a, b):
    """2 E|a-b| - E|a-a'| - E|b-b'|, without the pairs of a point with itself."""
    n, m = len(a), len(b)
    ab = torch.cdist(a, b).mean()
    aa = torch.cdist(a, a).sum() / (n * (n - 1))
    bb = torch.cdist(b, b).sum() / (m * (m - 1))
    return (2 * ab - aa - bb).item()


# %% evaluation
ema.eval()
want = torch.arange(1000) % 2
fake = sample(ema, want)
nearest = torch.cdist(fake, train_x * sigma + mu).topk(15, largest=False).indices
agree = (train_y[nearest].float().mean(dim=1).round().long() == want).float().mean().item()
print(f"energy distance samples / test   {energy_distance(fake, test_x):.5f}")
print(f"energy distance per class        "
      + " ".join(f"{energy_distance(fake[want == c], test_x[test_y == c]):.5f}" for c in (0, 1)))
print(f"energy distance gaussian / test  {energy_distance(torch.randn(1000, 2) * sigma + mu, test_x):.5f}")
print(f"class agreement of the samples   {agree:.4f}")
