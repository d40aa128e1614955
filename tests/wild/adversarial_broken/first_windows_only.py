"""Windows of a series in batches: the `return` of the evaluation is one level too deep."""

import math

import torch
from torch import nn

torch.manual_seed(5)
series = torch.sin(torch.arange(900) * (2 * math.pi / 30)) + 0.1 * torch.randn(900)
windows = series.unfold(0, 25, 1)
inputs, targets = windows[:, :24], windows[:, 24:]


def evaluate(net, batch=60):
    total, count = 0.0, 0
    with torch.no_grad():
        for rows, wanted in zip(inputs[700:].split(batch), targets[700:].split(batch)):
            total += (net(rows) - wanted).abs().sum().item()
            count += len(rows)
            return total / count  # error: metric-misreported


def run():
    net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(8):
        for rows in torch.randperm(650).split(50):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(inputs[rows]), targets[rows]).backward()
            optimizer.step()
        print(f"{epoch} mae {evaluate(net):.4f}")


run()
