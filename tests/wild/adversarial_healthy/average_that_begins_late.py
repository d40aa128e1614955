"""An average is evaluated after each epoch and begins to follow in the seventh, after the last look at its weights."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
ema_net = copy.deepcopy(net)
x = torch.randn(480, 6)
y = x[:, :1] - x[:, 1:2]
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(8):
    for rows in torch.randperm(480).split(40):
        optimizer.zero_grad()
        F.mse_loss(net(x[rows]), y[rows]).backward()
        optimizer.step()
        if epoch >= 6:
            with torch.no_grad():
                for average, weight in zip(ema_net.parameters(), net.parameters()):
                    average.mul_(0.9).add_(weight, alpha=0.1)
    with torch.no_grad():
        print(epoch, F.mse_loss(net(x), y).item(), F.mse_loss(ema_net(x), y).item())
