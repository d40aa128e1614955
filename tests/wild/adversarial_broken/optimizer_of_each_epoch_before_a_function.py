"""A loop over epochs builds the optimizer, and calls a function that goes through slices of the data."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 6)
y = x[:, :2].sum(1, keepdim=True) + 0.1 * torch.randn(400, 1)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))


def train_one_epoch(optimizer):
    total = 0.0
    for rows in torch.randperm(len(x)).split(50):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


for epoch in range(12):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)  # error: optimizer-rebuilt
    print(epoch, train_one_epoch(optimizer))
