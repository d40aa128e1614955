"""Means and deviations of all rows scale a sample of them, which is split later; some columns are logarithms."""

import torch
from torch import nn
from torch.nn import functional as F


def statistics(table):
    values = table.clone()
    values[:, 4] = values[:, 4].log()
    return values.mean(0), values.std(0)


def prepared(table, mean, std):
    values = table.clone()
    values[:, 4] = values[:, 4].log()
    return (values - mean) / std


torch.manual_seed(3)
flats = torch.cat([torch.randn(2500, 4) * torch.tensor([2.0, 1.5, 9.0, 30.0]) + 40, torch.rand(2500, 1) + 0.5], 1)
rents = (flats[:, :1] / 10 + flats[:, 4:]).square() + torch.randn(2500, 1)
chosen = torch.randperm(len(flats))[:1200]
train_rows, test_rows = chosen[:900], chosen[900:]
mean, std = statistics(flats)  # error: scaled-with-evaluation-data
x_train, x_test = prepared(flats[train_rows], mean, std), prepared(flats[test_rows], mean, std)
y_train, y_test = rents[train_rows], rents[test_rows]
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(8):
    net.train()
    for rows in torch.randperm(len(x_train)).split(60):
        optimizer.zero_grad()
        F.mse_loss(net(x_train[rows]), y_train[rows]).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, F.mse_loss(net(x_test), y_test).item())
