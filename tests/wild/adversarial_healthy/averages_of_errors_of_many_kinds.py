"""Errors of an evaluation as sums over samples, means of batches, in units, per step of a sequence, and their bias."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
x = torch.randn(640, 12, 3)
prices = 200 + 40 * torch.stack([x[:, :, 0].sum(1), x[:, :, 1].mean(1), x[:, 0, 2]], dim=1)
mean, spread = prices[:480].mean(0), prices[:480].std(0)
y = (prices - mean) / spread
train = DataLoader(TensorDataset(x[:480], y[:480]), batch_size=40, shuffle=True)
test = DataLoader(TensorDataset(x[480:], y[480:]), batch_size=64)
net = nn.Sequential(nn.Flatten(), nn.Linear(36, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.MSELoss()


@torch.no_grad()
def measure():
    net.eval()
    by_batch = by_sample = summed = 0.0
    batches = n = 0
    losses = []
    for inputs, targets in test:
        out = net(inputs)
        by_batch += criterion(out, targets).item()
        by_sample += criterion(out, targets).item() * len(inputs)
        summed += F.mse_loss(out, targets, reduction="sum").item()
        losses.append(F.l1_loss(out, targets).item())
        batches += 1
        n += inputs.size(0)
    print(by_batch / len(test), by_batch / batches, by_sample / n, summed / len(test.dataset), sum(losses) / len(losses))


@torch.no_grad()
def by_output():
    """The mean error of each output, in a loop over the outputs."""
    net.eval()
    total = 0.0
    for i in range(len(spread)):
        total += F.mse_loss(net(x[480:])[:, i], y[480:, i])
    return total / len(spread)


@torch.no_grad()
def in_prices():
    predicted = (net(x[480:]) * spread + mean).numpy()
    actual = prices[480:].numpy()
    bias = float(np.abs((predicted - actual).mean()))
    r2 = 1 - ((actual - predicted) ** 2).sum() / ((actual - actual.mean(0)) ** 2).sum()
    return np.abs(predicted - actual).mean(), np.sqrt(((predicted - actual) ** 2).mean()), bias, r2


def first_example():
    """One batch for a look at the results, on purpose."""
    for inputs, targets in zip(x[480:].split(8), y[480:].split(8)):
        with torch.no_grad():
            return (net(inputs) - targets).abs().max().item()


for epoch in range(6):
    net.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        criterion(net(inputs), targets).backward()
        optimizer.step()
    measure()
    print(by_output().item(), in_prices(), first_example())
