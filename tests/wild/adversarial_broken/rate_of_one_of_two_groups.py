"""The rate falls in the first group only; biases keep the peak to the end."""

import math

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(600, 8), torch.randint(0, 3, (600,))
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
weights = [p for p in net.parameters() if p.dim() > 1]
biases = [p for p in net.parameters() if p.dim() == 1]
groups = [{"params": weights, "weight_decay": 0.1}, {"params": biases, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-2)
for step in range(150):
    optimizer.param_groups[0]["lr"] = 5e-3 * (1 + math.cos(math.pi * step / 150))  # error: learning-rate-off-course
    rows = torch.randint(0, 600, (32,))
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
