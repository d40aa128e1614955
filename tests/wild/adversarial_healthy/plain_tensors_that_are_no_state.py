"""Tensors in plain attributes: constants, fitted before training, hidden states, caches, shadows, masks, counters."""

import io

import torch
from torch import nn


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)
        self.positions = torch.arange(6.0).sin()
        self.mean, self.spread = torch.zeros(6), torch.ones(6)
        self.calls, self.mask = torch.tensor(0.0), None
        self.register_buffer("window", torch.hann_window(6, periodic=False), persistent=False)

    def fit(self, x):
        self.mean, self.spread = x.mean(0), x.std(0)

    def forward(self, x):
        if self.mask is None or len(self.mask) != len(x):
            self.mask = torch.ones(len(x), 1)
        self.calls = self.calls + 1
        return self.net(((x - self.mean) / self.spread + self.positions) * self.mask * (1 + self.window))


class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(6, 8), nn.Linear(8, 3)
        self.state, self.features = torch.zeros(1, 8), torch.zeros(1, 8)

    def forward(self, x):
        hidden = self.cell(x, self.state.expand(len(x), -1))
        self.state = hidden.mean(0, keepdim=True).detach()
        self.features = self.state.clone()
        return self.head(hidden)


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 6) / 3)
        self.shadow = self.weight.detach().clone()
        self.directions = nn.functional.normalize(self.shadow)

    def forward(self, x):
        self.directions = nn.functional.normalize(self.weight.detach())
        if self.training:
            self.shadow = 0.9 * self.shadow + 0.1 * self.weight.detach()
        return x @ self.weight.T + 0.1 * x @ self.directions.T


torch.manual_seed(0)
x, y = 2 + 3 * torch.randn(120, 6), torch.randint(0, 3, (120,))
for model in (Constants(), Hidden(), Cached()):
    if isinstance(model, Constants):
        model.fit(x)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        model.train()
        for chosen in torch.randperm(100).split(20):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, (model(x[100:]).argmax(1) == y[100:]).float().mean().item())
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
