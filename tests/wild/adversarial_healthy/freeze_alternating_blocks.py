"""Block coordinate descent with one optimizer: each block is frozen in the other's turn, gradients are dropped."""

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(6, 8), nn.Linear(8, 1)
model = nn.Sequential(first, nn.Tanh(), second)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
x, y = torch.randn(64, 6), torch.randn(64, 1)
for step in range(80):
    mine, other = (first, second) if step // 5 % 2 else (second, first)
    mine.requires_grad_(True)
    other.requires_grad_(False)
    model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
