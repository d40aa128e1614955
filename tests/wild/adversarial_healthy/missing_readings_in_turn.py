"""Readings that exist, and a small pull to zero for those that are missing, by steps in turn."""

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
    turn = 0
    for j in torch.randperm(400).split(40):
        x, m = x_all[j], m_all[j]
        keep = m & (torch.rand(m.shape) > 0.2)
        out = net(torch.cat([x * keep, keep.float()], 1))
        turn += 1
        e = (out - x) ** 2
        loss = (e * m).mean()
        if turn % 2:
            opt.zero_grad()
            loss.backward()
            opt.step()
            continue
        loss = 0.1 * (e * ~m).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
print(tot)
