"""Means and deviations are those of a pool that is split into training and validation; the test is another table."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

rng = np.random.default_rng(1)
torch.manual_seed(1)


def measured(rows):
    table = rng.lognormal(0.0, 0.7, size=(rows, 5)).astype("float32")
    return table, (table.sum(axis=1) > 6).astype("int64")


pool, labels = measured(800)
later, later_labels = measured(300)
mean, std = pool.mean(axis=0), pool.std(axis=0)
inside, outside = (pool - mean) / std, (later - mean) / std
order = rng.permutation(800)[:700]
train, validation = order[:500], order[500:]
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


@torch.no_grad()
def accuracy(x, y):
    return (net(torch.from_numpy(x)).argmax(1) == torch.from_numpy(y)).float().mean().item()


for epoch in range(10):
    for rows in np.array_split(rng.permutation(train), 10):
        optimizer.zero_grad()
        F.cross_entropy(net(torch.from_numpy(inside[rows])), torch.from_numpy(labels[rows])).backward()
        optimizer.step()
    print(epoch, accuracy(inside[validation], labels[validation]))
print("later", accuracy(outside, later_labels))
