"""The time of a denoiser is divided as a whole number before its embedding: the model never learns the noise level."""

import torch
from torch import nn

torch.manual_seed(0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = nn.Embedding(10, 8)
        self.net = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x, t):
        level = (t / 1000).long()  # error: input-without-influence
        return self.net(torch.cat([x, self.levels(level)], 1))


def train(model, points, steps=60):
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(steps):
        x = points[torch.randint(len(points), (64,))]
        t = torch.randint(0, 1000, (64,))
        noise = torch.randn_like(x)
        alpha = (1 - t[:, None] / 1000).sqrt()
        loss = (model(alpha * x + (1 - alpha**2).sqrt() * noise, t) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


points = torch.randn(512, 2) * 0.1 + torch.tensor([1.0, -1.0])
print(f"loss {train(Denoiser(), points):.3f}")
