"""Windows of the past are split at random to choose a model; the figure is that of later steps."""

import torch
from torch import nn
from torch.nn import functional as F


def series(steps):
    values = torch.zeros(steps)
    for step in range(1, steps):
        values[step] = 0.9 * values[step - 1] + torch.randn(())
    return values


def windows(values):
    cut = values.unfold(0, 13, 1)
    return cut[:, :12].clone(), cut[:, 12:].clone()


torch.manual_seed(4)
values = series(1300)
x, y = windows(values[:1000])
x_test, y_test = windows(values[1000:])
order = torch.randperm(len(x))
x_train, y_train, x_val, y_val = x[order[:800]], y[order[:800]], x[order[800:]], y[order[800:]]
net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


@torch.no_grad()
def error(x, y):
    return F.mse_loss(net(x), y).item()


for epoch in range(6):
    for rows in torch.randperm(len(x_train)).split(50):
        optimizer.zero_grad()
        F.mse_loss(net(x_train[rows]), y_train[rows]).backward()
        optimizer.step()
    print(epoch, error(x_val, y_val))
print("later", error(x_test, y_test))
