"""Batch statistics estimated again by the training loop itself, with the learning rate turned to zero."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
schedule = CosineAnnealingLR(optimizer, 40)
for _ in range(40):
    x, y = torch.randn(32, 6), torch.randint(0, 2, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    schedule.step()
