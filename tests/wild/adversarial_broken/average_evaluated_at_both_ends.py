"""An average of the weights is evaluated before and after the training, and its update was forgotten."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
ema = copy.deepcopy(net).requires_grad_(False)
x = torch.randn(480, 6)
y = x[:, :1] - x[:, 1:2]
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
with torch.no_grad():
    print(F.mse_loss(ema(x), y).item())  # error: average-never-updated
for _ in range(120):
    rows = torch.randint(480, (32,))
    optimizer.zero_grad()
    F.mse_loss(net(x[rows]), y[rows]).backward()
    optimizer.step()
with torch.no_grad():
    print(F.mse_loss(net(x), y).item(), F.mse_loss(ema(x), y).item())
