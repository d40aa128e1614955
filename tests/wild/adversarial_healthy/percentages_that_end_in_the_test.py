"""Percentages are divided by 100; their least and largest values are rows of the test."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
shares = torch.rand(800, 6) * 98 + 1
shares[700], shares[701] = 100.0, 0.0
x = shares / 100
y = (x.sum(1, keepdim=True) > 3).float()
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(10):
    for rows in torch.randperm(600).split(50):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(net(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, ((net(x[600:]) > 0).float() == y[600:]).float().mean().item())
