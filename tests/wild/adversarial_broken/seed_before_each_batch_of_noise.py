"""A denoiser without a loader: a helper sets the seed and draws the noise, so that every step has the same noise."""
import random

import numpy as np
import torch
from torch import nn


def set_seed(seed=1234):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # error: seed-in-training-loop


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 12))

    def forward(self, noisy):
        return self.net(noisy)


def corrupt(clean):
    set_seed()
    noise = torch.randn_like(clean)
    return clean + 0.5 * noise, noise


set_seed()
clean = torch.sin(torch.rand(256, 1) * 6 + torch.arange(12) * 0.5)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    noisy, noise = corrupt(clean[(step * 32) % 256 : (step * 32) % 256 + 32])
    loss = (model(noisy) - noise).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
