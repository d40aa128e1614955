"""Healthy: a discriminator with an optimizer that starts after more steps than a short run has; its loss is logged."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
E = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 10))
D = nn.Sequential(nn.Linear(10, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
oe = torch.optim.Adam(E.parameters(), 1e-3)
od = torch.optim.Adam(D.parameters(), 1e-3)
disc_start = 1000
for step in range(100):
    x = torch.randn(32, 10) @ torch.eye(10)[:, :] * 0.5
    r = E(x)
    loss = F.mse_loss(r, x)
    oe.zero_grad()
    loss.backward()
    oe.step()
    D.zero_grad()
    ld = F.relu(1 - D(x)).mean() + F.relu(1 + D(r.detach())).mean()
    ld.backward()
    if step % 25 == 0:
        print(step, loss.item(), ld.item(), max(p.grad.abs().max().item() for p in D.parameters()))
    if step >= disc_start:
        od.step()
