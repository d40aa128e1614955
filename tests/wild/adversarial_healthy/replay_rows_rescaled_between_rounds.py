"""A buffer of rows is overwritten round by round, and one table is rescaled once before the training goes on."""

import torch
from torch import nn

torch.manual_seed(5)
buffer, value = torch.zeros(200, 6), nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(value.parameters(), lr=3e-3)
filled = 0
for episode in range(40):
    for _ in range(10):
        buffer[filled % 200] = torch.randn(6)
        filled += 1
    rows = buffer[: min(filled, 200)]
    picked = rows[torch.randint(0, len(rows), (32,))]
    loss = nn.functional.mse_loss(value(picked), picked.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
table = torch.rand(200, 6) * 100
for stage in range(2):
    if stage:
        table /= 100
    for _ in range(30):
        picked = table[torch.randperm(200)[:32]]
        loss = nn.functional.mse_loss(value(picked), picked.mean(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
