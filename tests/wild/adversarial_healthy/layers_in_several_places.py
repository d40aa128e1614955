"""Layers that stand in several places on purpose: a block that is applied again, activations of a multiplied list, deep copies."""

import copy

import torch
from torch import nn

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        block = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.recurrent = nn.Sequential(block, block, block)
        # one layer, which all steps share, as in a universal transformer
        self.shared = nn.ModuleList([nn.Linear(width, width)] * 2)
        self.activations = nn.ModuleList([nn.GELU()] * 3)
        self.drops = nn.ModuleList([nn.Dropout(0.1) for _ in range(3)])
        self.own = nn.ModuleList(copy.deepcopy(layer) for layer in [nn.Linear(width, width)] * 3)
        self.embed, self.out = nn.Linear(6, width), nn.Linear(width, 1)

    def forward(self, x):
        x = self.recurrent(self.embed(x))
        for layer in self.shared:
            x = x + torch.tanh(layer(x))
        for layer, activation, drop in zip(self.own, self.activations, self.drops, strict=True):
            x = x + drop(activation(layer(x)))
        return self.out(x).squeeze(-1)


x = torch.randn(400, 6)
y = torch.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * torch.randn(400)
model = Deep()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    model.train()
    for rows in torch.randperm(320).split(32):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: {nn.functional.mse_loss(model(x[320:]), y[320:]):.3f}")
