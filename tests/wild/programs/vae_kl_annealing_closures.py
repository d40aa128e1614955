"""VAE with KL annealing: closures for the loss and the step, free bits, importance-weighted bound at the end."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class VAE(nn.Module):
    def __init__(self, d=64, h=64, z=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.LeakyReLU(0.1))
        self.mu, self.logvar = nn.Linear(h, z), nn.Linear(h, z)
        self.dec = nn.Sequential(nn.Linear(z, h), nn.LeakyReLU(0.1), nn.Linear(h, d))

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def build(model, total, free_bits=0.05):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    done = 0

    def beta():
        return min(1.0, done / (0.5 * total))

    def elbo(x):
        logits, mu, logvar = model(x)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
        kl = (0.5 * (mu ** 2 + logvar.exp() - 1 - logvar)).mean(0).clamp(min=free_bits).sum()
        return reconstruction, kl

    def step(x):
        nonlocal done
        optimizer.zero_grad()
        reconstruction, kl = elbo(x)
        (reconstruction + beta() * kl).backward()
        optimizer.step()
        done += 1
        return reconstruction.item(), kl.item()

    def evaluate(x):
        model.eval()
        with torch.no_grad():
            reconstruction, kl = elbo(x)
        model.train()
        return (reconstruction + kl).item()

    return step, evaluate


@torch.no_grad()
def importance_weighted(model, x, k=20):
    mu, logvar = model.encode(x)
    z = mu + torch.randn(k, *mu.shape) * (0.5 * logvar).exp()
    log_p = -F.binary_cross_entropy_with_logits(model.dec(z), x.expand(k, -1, -1), reduction="none").sum(-1)
    log_prior = -0.5 * (z ** 2 + math.log(2 * math.pi)).sum(-1)
    log_q = -0.5 * ((z - mu) ** 2 / logvar.exp() + logvar + math.log(2 * math.pi)).sum(-1)
    return -(torch.logsumexp(log_p + log_prior - log_q, 0) - math.log(k)).mean().item()


torch.manual_seed(1)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
x = x[torch.randperm(len(x))]
train, test = x[:1500], x[1500:]
model, epochs = VAE(), 15
step, evaluate = build(model, total=epochs * 15)
for epoch in range(epochs):
    for index in torch.randperm(len(train)).view(15, 100):
        reconstruction, kl = step(train[index])
    if epoch % 5 == 4:
        print(f"epoch {epoch} reconstruction {reconstruction:.2f} kl {kl:.2f} test {evaluate(test):.2f}")
model.eval()
print(f"importance-weighted bound {importance_weighted(model, test):.2f}")
