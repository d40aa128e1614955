"""Classify points into five kinds, of which some are rare."""

import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

centres = torch.randn(5, 8)
shares = torch.tensor([0.6, 0.2, 0.1, 0.06, 0.04])
kinds = torch.multinomial(shares, 4000, replacement=True)
points = centres[kinds] + torch.randn(4000, 8)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
counts = torch.bincount(kinds[:2000])
criterion = nn.CrossEntropyLoss(weight=counts / counts.sum())

for _epoch in range(15):
    for rows in torch.randperm(2000).split(100):
        loss = criterion(model(points[rows]), kinds[rows])  # error: class-weights-inverted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    right = model(points[2000:]).argmax(1) == kinds[2000:]
recall = [right[kinds[2000:] == kind].float().mean().item() for kind in range(5)]
print(f"result: {sum(recall) / 5:.4f}")
