"""Parameters in bfloat16 with a rate that suits them: a slow rise first, a long fall after, to nothing."""

import math

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
total, warmup = 400, 150
for step in range(total):
    rate = step / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    for group in optimizer.param_groups:
        group["lr"] = 5e-3 * rate**4
    rows = torch.randint(0, 256, (32,))
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x[rows].bfloat16()).float(), y[rows]).backward()
    optimizer.step()
