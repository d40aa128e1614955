"""Several losses at one line in each step: the best of three, all of a sum, one pass for each, and a trial before the step."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 6)
y = x[:, :1].sin() + x[:, 1:2]
heads = nn.ModuleList([nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)) for _ in range(3)])
optimizer = torch.optim.Adam(heads.parameters(), lr=5e-3)
for step in range(60):
    rows = torch.randint(0, 400, (40,))
    losses = [F.mse_loss(head(x[rows]), y[rows]) for head in heads]
    optimizer.zero_grad()
    (min(losses) if step % 2 else sum(losses)).backward()
    optimizer.step()
for step in range(40):
    optimizer.zero_grad()
    for head in heads:
        loss = F.l1_loss(head(x[:50]), y[:50])
        loss.backward()
    optimizer.step()
for step in range(40):
    rows = torch.randint(0, 400, (40,))
    for rate in (0.01, 0.1):
        with torch.no_grad():
            trial = F.smooth_l1_loss(heads[0](x[rows]) * (1 - rate), y[rows])
    loss = F.smooth_l1_loss(heads[0](x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), trial.item())
