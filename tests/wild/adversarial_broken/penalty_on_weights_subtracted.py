"""A penalty on the weights by hand, in a function that returns the loss: it is subtracted."""

import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(400, 12)
y = x[:, :2].sum(1, keepdim=True) + 0.3 * torch.randn(400, 1)


def loss_of(net, inputs, targets, strength=1e-3):
    penalty = sum(weight.pow(2).sum() for weight in net.parameters())
    return nn.functional.mse_loss(net(inputs), targets) - strength * penalty


net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(12):
    for rows in torch.randperm(300).split(50):
        optimizer.zero_grad()
        loss_of(net, x[rows], y[rows]).backward()  # error: loss-maximised
        optimizer.step()
    with torch.no_grad():
        print(epoch, f"{nn.functional.mse_loss(net(x[300:]), y[300:]).item():.4f}")
