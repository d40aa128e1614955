"""Each signal, or each day of a market, is standardised with its own statistics; patterns of plus and minus one."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def run(inputs, targets, train, width):
    model = nn.Sequential(nn.Flatten(), nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(inputs[:train], targets[:train]), batch_size=24, shuffle=True)
    held_out = DataLoader(TensorDataset(inputs[train:], targets[train:]), batch_size=64)
    for _ in range(4):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(sum(nn.functional.mse_loss(model(x), y).item() for x, y in held_out) / len(held_out))


torch.manual_seed(6)
signals = torch.randn(240, 4, 25).cumsum(2)
signals = (signals - signals.mean(2, keepdim=True)) / signals.std(2, keepdim=True, correction=0)
run(signals, signals[:, :1, -1] - signals[:, 1:2, 0], 180, 100)
days = torch.randn(60, 20, 6).exp()
days = (days - days.mean(1, keepdim=True)) / days.std(1, keepdim=True)
stocks = days.flatten(0, 1)
run(stocks, stocks[:, :1] + 0.1 * torch.randn(1200, 1), 900, 6)
spins = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=8)))[torch.randperm(256)]
run(spins, spins[:, :2].prod(1, keepdim=True), 200, 8)
