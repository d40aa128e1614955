"""Learn a distance between points of ten classes: small for equal classes, large for different ones."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

y = torch.randint(10, (1200,))
x = torch.cat([torch.randn(10, 4)[y] + 0.3 * torch.randn(1200, 4), 3 * torch.randn(1200, 28)], 1)
train, test = slice(0, 800), slice(800, 1200)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu")

for _epoch in range(20):
    for rows in torch.randperm(800).split(80):
        optimizer.zero_grad()
        code = model(x[rows])
        distance = (code[:, None] - code[None]).pow(2).sum(-1).sqrt()
        same = (y[rows, None] == y[rows]).float()
        loss = (same * distance + (1 - same) * (2 - distance).clamp(min=0)).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # error: scaler-skips-steps
        scaler.update()

with torch.no_grad():
    nearest = torch.cdist(model(x[test]), model(x[train])).argmin(1)
    accuracy = (y[train][nearest] == y[test]).float().mean().item()
print(f"result: {accuracy:.4f}")
