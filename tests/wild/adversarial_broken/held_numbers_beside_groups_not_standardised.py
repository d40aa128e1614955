"""Prices of flats by groups and numbers: only the numbers of the training are standardised."""

import torch
from torch import nn

torch.manual_seed(0)
KINDS, FLOORS = 12, 5


def table(n):
    groups = torch.stack([torch.randint(0, KINDS, (n,)), torch.randint(0, FLOORS, (n,))], 1)
    numbers = torch.stack([70 + 30 * torch.randn(n), 40 + 20 * torch.rand(n)], 1)
    price = groups[:, 0] + 0.05 * numbers[:, 0] - 0.04 * numbers[:, 1] + 0.2 * torch.randn(n)
    return groups, numbers, price


class Prices(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind, self.floor = nn.Embedding(KINDS, 5), nn.Embedding(FLOORS, 3)
        self.mlp = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, groups, numbers):
        parts = [self.kind(groups[:, 0]), self.floor(groups[:, 1]), numbers]
        return self.mlp(torch.cat(parts, 1)).squeeze(1)


groups, numbers, price = table(1200)
held_groups, held_numbers, held_price = table(300)
mean, std = numbers.mean(0), numbers.std(0)
numbers = (numbers - mean) / std
model = Prices()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    model.train()
    order = torch.randperm(len(price))
    for rows in order.split(60):
        loss = nn.functional.mse_loss(model(groups[rows], numbers[rows]), price[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        error = (model(held_groups, held_numbers) - held_price).square().mean().item()  # error: inputs-on-another-scale
    print(epoch, error)
