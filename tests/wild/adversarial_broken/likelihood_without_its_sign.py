"""A mixture is fitted by its log-likelihood, which is differentiated without its sign, by hand-written updates."""
import math

import torch
from torch import nn


class Density(nn.Module):
    def __init__(self, parts=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2 * parts))

    def forward(self, x, y):
        mean, spread = self.net(x).chunk(2, 1)
        scale = nn.functional.softplus(spread) + 0.02
        each = -0.5 * ((y - mean) / scale).square() - scale.log() - 0.5 * math.log(2 * math.pi)
        return each.logsumexp(1) - math.log(mean.shape[1])


torch.manual_seed(0)
density = Density()
optimizer = torch.optim.RMSprop(density.parameters(), 5e-3)
for step in range(300):
    x = torch.rand(48, 2)
    y = x.sum(1, keepdim=True) + 0.05 * torch.randn(48, 1)
    optimizer.zero_grad()
    loss = density(x, y).mean()
    loss.backward()  # error: loss-maximised
    optimizer.step()
print(f"loss {loss.item():.3f}")
