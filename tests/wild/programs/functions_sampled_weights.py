"""Weights are sampled in every forward, also in evaluation, ON PURPOSE; the prediction averages samples."""
import math
import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.linspace(-1, 1, 120)[:, None]
y = torch.sin(3 * x) + 0.1 * torch.randn_like(x)
order = torch.randperm(120)
xtr, ytr, xte, yte = x[order[:90]], y[order[:90]], x[order[90:]], y[order[90:]]
N, NOISE, PRIOR = 90, 0.1, 1.0


class Gaussian:
    def __init__(self, *shape):
        self.mu = (torch.randn(*shape) * 0.3).requires_grad_()
        self.rho = torch.full(shape, -4.0).requires_grad_()

    def sample(self):
        return self.mu + F.softplus(self.rho) * torch.randn_like(self.mu)

    def kl(self):
        s = F.softplus(self.rho)
        return (math.log(PRIOR) - s.log() + (s ** 2 + self.mu ** 2) / (2 * PRIOR ** 2) - 0.5).sum()


posterior = [Gaussian(1, 32), Gaussian(32), Gaussian(32, 1), Gaussian(1)]


def forward(x):
    w1, b1, w2, b2 = (q.sample() for q in posterior)
    return torch.tanh(x @ w1 * 3 + b1) @ w2 + b2


def nll(x, y):
    return 0.5 * ((forward(x) - y) / NOISE).pow(2).mean()


variational = [t for q in posterior for t in (q.mu, q.rho)]
opt = torch.optim.Adam(variational, lr=1e-2)
for epoch in range(200):
    for rows in torch.randperm(N).split(30):
        loss = nll(xtr[rows], ytr[rows]) + sum(q.kl() for q in posterior) / N
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 50 == 49:
        with torch.no_grad():
            draws = torch.stack([forward(xte) for _ in range(30)])
            rmse = (draws.mean(0) - yte).pow(2).mean().sqrt().item()
        print(f'epoch {epoch + 1} loss {loss.item():.3f} test rmse {rmse:.3f} sd {draws.std(0).mean().item():.3f}')
