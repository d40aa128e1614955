"""Classify points into five kinds."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

centres = 2 * torch.randn(5, 8)
kinds = torch.randint(5, (1500,))
points = centres[kinds] + torch.randn(1500, 8)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(points[:1000], kinds[:1000]), batch_size=100, shuffle=True)

for _epoch in range(10):
    for x, _y in loader:
        out = model(x)
        predicted = out.argmax(1)
        loss = F.cross_entropy(out, predicted)  # error: target-is-the-result
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    right = (model(points[1000:]).argmax(1) == kinds[1000:]).float().mean()
print(f"result: {right:.4f}")
