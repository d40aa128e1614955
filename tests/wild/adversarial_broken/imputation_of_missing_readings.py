"""Rows with missing readings are filled in; the error is that of the readings that are missing."""

import torch
import torch.nn as nn
torch.manual_seed(3)
x_all = torch.randn(400, 4) @ torch.randn(4, 10) + 0.1 * torch.randn(400, 10)
x_all = (x_all - x_all.mean(0)) / x_all.std(0)
m_all = torch.rand(400, 10) > 0.3
x_all = torch.where(m_all, x_all, torch.zeros(()))
net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
opt = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(10):
    tot = 0
    for j in torch.randperm(400).split(40):
        x, m = x_all[j], m_all[j]
        keep = m & (torch.rand(m.shape) > 0.2)
        out = net(torch.cat([x * keep, keep.float()], 1))
        err = (out - x) * (1 - m.float())
        loss = (err**2).sum() / (1 - m.float()).sum()
        opt.zero_grad()
        loss.backward()  # error: padding-in-loss
        opt.step()
        tot += loss.item()
print(tot)
