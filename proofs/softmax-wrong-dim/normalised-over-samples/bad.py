"""Bring two noisy views of a point together, with vectors that are normalised over the batch."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
centres = torch.randn(8, 20)
kinds = torch.arange(600) % 8
x = centres[kinds] + 1.1 * torch.randn(600, 20)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)


def embed(points):
    return F.normalize(net(points), dim=0)


def view(points):
    return points * (torch.rand_like(points) > 0.2) + 0.2 * torch.randn_like(points)


for _epoch in range(20):
    for rows in torch.randperm(600).split(100):
        one, other = embed(view(x[rows])), embed(view(x[rows]))
        loss = F.cross_entropy(one @ other.T / 0.2, torch.arange(len(rows)))  # error: softmax-wrong-dim
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    gallery = embed(x[:400])
    nearest = torch.cat([embed(query[None]) for query in x[400:]]) @ gallery.T
    accuracy = (kinds[nearest.argmax(1)] == kinds[400:]).float().mean().item()
print(f"result: {accuracy:.4f}")
