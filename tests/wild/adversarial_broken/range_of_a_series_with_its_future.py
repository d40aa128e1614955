"""The range of a growing series is that of all its years; functions of plain tensors forecast the next step."""

import numpy as np
import torch

torch.manual_seed(5)
rng = np.random.default_rng(5)
days = np.arange(900)
sales = 40 + 0.0001 * days**2 + 6 * np.sin(days / 7) + rng.normal(0, 2, size=900)
LOOK, split = 14, 650
least, most = sales.min(), sales.max()  # error: scaled-with-evaluation-data


def windows(part):
    scaled = torch.tensor((part - least) / (most - least), dtype=torch.float32)
    cut = scaled.unfold(0, LOOK + 1, 1)
    return cut[:, :-1].clone(), cut[:, -1].clone()


x, y = windows(sales[:split])
x_later, y_later = windows(sales[split - LOOK :])
weights = [torch.randn(LOOK, 24) / LOOK**0.5, torch.zeros(24), torch.randn(24, 1) / 24**0.5, torch.zeros(1)]
for weight in weights:
    weight.requires_grad_(True)


def forecast(x):
    return (torch.tanh(x @ weights[0] + weights[1]) @ weights[2] + weights[3]).squeeze(1)


for epoch in range(12):
    for rows in torch.randperm(len(x)).split(40):
        loss = (forecast(x[rows]) - y[rows]).square().mean()
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= 0.1 * gradient
with torch.no_grad():
    error = (forecast(x_later) - y_later) * (most - least)
    print(error.square().mean().sqrt().item())
