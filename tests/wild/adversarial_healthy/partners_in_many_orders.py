"""Contrastive losses: interleaved views, two directions, a queue, a one-shot task, and scores that only spread."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)
x = torch.randn(600, 12)


def build(outputs=16):
    net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, outputs))
    return net, torch.optim.Adam(net.parameters(), lr=1e-3)


def noisy(rows):
    return x[rows] + 0.3 * torch.randn(len(rows), 12)


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# The views of a sample follow each other.
net, optimizer = build()
partners = torch.arange(128) ^ 1
for _ in range(60):
    rows = torch.randint(0, 600, (64,)).repeat_interleave(2)
    made = normalize(net(noisy(rows)), dim=1)
    update(optimizer, cross_entropy((made @ made.T / 0.2).fill_diagonal_(-1e9), partners))

# Both directions, where the second view comes in another order and the partners follow it.
net, optimizer = build()
for _ in range(60):
    rows, order = torch.randint(0, 600, (64,)), torch.randperm(64)
    one, other = normalize(net(noisy(rows)), dim=1), normalize(net(noisy(rows[order])), dim=1)
    scores = one @ other.T / 0.2
    update(optimizer, (cross_entropy(scores, order.argsort()) + cross_entropy(scores.T, order)) / 2)

# A queue of negatives behind the positive in the first column.
net, optimizer = build()
queue = normalize(torch.randn(256, 16), dim=1)
for _ in range(60):
    rows = torch.randint(0, 600, (64,))
    one, other = normalize(net(noisy(rows)), dim=1), normalize(net(noisy(rows)), dim=1).detach()
    scores = torch.cat([(one * other).sum(1, keepdim=True), one @ queue.T], dim=1) / 0.2
    update(optimizer, cross_entropy(scores, torch.zeros(64, dtype=torch.long)))
    queue = torch.cat([other, queue])[:256]

# One query of each of sixteen classes, in any order.
net, optimizer = build()
centres = torch.randn(16, 12)
for _ in range(60):
    order = torch.randperm(16)
    support, query = net(centres + 0.3 * torch.randn(16, 12)), net(centres[order] + 0.3 * torch.randn(16, 12))
    update(optimizer, cross_entropy(-torch.cdist(query, support), order))

# Views are brought together by a distance, and results are spread by their scores with one another.
net, optimizer = build()
for _ in range(60):
    rows = torch.randint(0, 600, (64,))
    one, other = normalize(net(noisy(rows)), dim=1), normalize(net(noisy(rows)), dim=1)
    spread = cross_entropy(one @ one.T / 0.2, torch.arange(64))
    update(optimizer, (one - other).square().sum(1).mean() + 0.5 * spread)
