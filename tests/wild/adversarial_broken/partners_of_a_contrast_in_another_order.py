"""Embeddings of two views, made by one call; the partners are numbered as if the second half came in reverse."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 12)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
count = 64
partners = torch.arange(2 * count - 1, -1, -1)


def noisy(rows):
    return x[rows] + 0.3 * torch.randn(len(rows), 12)


for step in range(120):
    rows = torch.randint(0, 600, (count,))
    made = nn.functional.normalize(net(torch.cat([noisy(rows), noisy(rows)])), dim=1)
    scores = (made @ made.T / 0.2).masked_fill(torch.eye(2 * count, dtype=torch.bool), -1e9)
    loss = nn.functional.cross_entropy(scores, partners)  # error: targets-of-other-samples
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, loss.item())
