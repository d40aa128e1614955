"""Density models three ways: denoising score matching with Langevin samples, sliced score matching by Hessian-vector products, a spline flow."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def moons(n):
    t = torch.rand(n) * torch.pi
    side = torch.randint(0, 2, (n,))
    x = torch.where(side == 0, t.cos(), 1 - t.cos())
    y = torch.where(side == 0, t.sin(), 0.5 - t.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


score = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(score.parameters(), lr=3e-3)
for it in range(120):
    x = moons(128)
    sigma = 10 ** (-1.5 * torch.rand(128, 1))
    noise = torch.randn_like(x)
    loss = (score(torch.cat([x + sigma * noise, sigma.log()], 1)) + noise).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    s = torch.randn(200, 2)
    for sigma in torch.logspace(0, -1.5, 8):
        for _ in range(10):
            g = score(torch.cat([s, sigma.log().expand(200, 1)], 1)) / sigma
            s = s + 0.1 * sigma**2 * g + (0.2 * sigma**2).sqrt() * torch.randn_like(s)
print("denoising", round(loss.item(), 3), "distance of samples", round(torch.cdist(s, moons(1000)).amin(1).mean().item(), 3))

energy = nn.Sequential(nn.Linear(2, 48), nn.Softplus(), nn.Linear(48, 1))
opt = torch.optim.Adam(energy.parameters(), lr=5e-3)
for it in range(100):
    x = moons(128).requires_grad_()
    v = torch.randn_like(x)
    (g,) = torch.autograd.grad(-energy(x).sum(), x, create_graph=True)
    (hv,) = torch.autograd.grad((g * v).sum(), x, create_graph=True)
    loss = ((hv * v).sum(1) + 0.5 * (g * v).sum(1) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 33 == 0:
        print("sliced", it, round(loss.item(), 3))


class Spline(nn.Module):
    """Monotone piecewise-linear map of each coordinate, conditioned on the other; uniform base."""

    def __init__(self, bins=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, bins))
        self.bins = bins

    def forward(self, x, context):
        p = F.softmax(self.net(context), 1)
        pos = x.squeeze(1).clamp(0, 1 - 1e-6) * self.bins
        k = pos.long()
        cum = F.pad(p.cumsum(1), (1, 0))
        width = p.gather(1, k[:, None]).squeeze(1)
        y = cum.gather(1, k[:, None]).squeeze(1) + (pos - k) * width
        return y[:, None], (width * self.bins).log()


a, b = Spline(), Spline()
opt = torch.optim.Adam([*a.parameters(), *b.parameters()], lr=1e-2)
for it in range(100):
    x = (moons(256) + torch.tensor([1.3, 0.8])) / torch.tensor([3.6, 2.2])
    y0, l0 = a(x[:, :1], torch.zeros(256, 1))
    _, l1 = b(x[:, 1:], x[:, :1])
    loss = -(l0 + l1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 33 == 0:
        print("spline", it, round(loss.item(), 3))
