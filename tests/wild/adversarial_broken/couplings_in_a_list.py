"""A flow with a likelihood by another name: the couplings are in a list, and only the scale is trained."""

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, even):
        super().__init__()
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0, 0.0] if even else [0.0, 1.0, 0.0, 1.0]))
        self.shift = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 4))

    def forward(self, x):
        return x + (1 - self.mask) * self.shift(self.mask * x)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.couplings = [Coupling(number % 2 == 0) for number in range(4)]
        self.log_scale = nn.Parameter(torch.zeros(4))

    def log_prob(self, x):
        for coupling in self.couplings:
            x = coupling(x)  # error: layers-in-plain-container
        z = x * self.log_scale.exp()
        return -(nn.functional.softplus(z) + nn.functional.softplus(-z)).sum(1) + self.log_scale.sum()


torch.manual_seed(9)
latent = torch.randn(1000, 2)
data = torch.cat([latent, latent**2 + 0.3 * torch.randn(1000, 2)], dim=1)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
for epoch in range(6):
    for rows in torch.randperm(800).split(40):
        loss = -flow.log_prob(data[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"epoch {epoch}: {-flow.log_prob(data[800:]).mean():.3f}")
