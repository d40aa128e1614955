"""Norms over the batch on purpose: correlations of features, contrast of clusters and of features, pooling of a bag."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)
x = torch.randn(600, 12)


def build(outputs):
    net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, outputs))
    return net, torch.optim.Adam(net.parameters(), lr=1e-3)


def views(net):
    rows = torch.randint(0, 600, (64,))
    return [net(x[rows] + 0.3 * torch.randn(64, 12)) for _ in range(2)]


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# Correlations of features over the batch are to be those of a feature with itself only.
net, optimizer = build(16)
for _ in range(60):
    one, other = (normalize(part - part.mean(0), dim=0) for part in views(net))
    update(optimizer, (one.T @ other - torch.eye(16)).square().sum())

# Features and clusters are classes of a cross entropy, each described by its values over the batch.
net, optimizer = build(16)
for _ in range(60):
    one, other = (normalize(part.softmax(1), dim=0) for part in views(net))
    update(optimizer, cross_entropy(one.T @ other / 0.5, torch.arange(16)))

# Features are contrasted, where each sample has a norm of one.
net, optimizer = build(16)
for _ in range(60):
    one, other = (normalize(part, dim=1) for part in views(net))
    update(optimizer, cross_entropy(one.T @ other / 0.2, torch.arange(16)))

# Scores of samples, with vectors that are normalised each for itself after the batch was standardised.
net, optimizer = build(16)
for _ in range(60):
    one, other = (normalize(normalize(part - part.mean(0), dim=0), dim=1) for part in views(net))
    update(optimizer, cross_entropy(one @ other.T / 0.2, torch.arange(64)))

# A bag of sixteen patches is pooled with weights that sum to one over the patches.
net, optimizer = build(9)
for _ in range(60):
    scores, values = net(x[torch.randint(0, 600, (32, 16))]).split([1, 8], dim=-1)
    update(optimizer, cross_entropy((scores.softmax(1) * values).sum(1), torch.randint(0, 8, (32,))))
