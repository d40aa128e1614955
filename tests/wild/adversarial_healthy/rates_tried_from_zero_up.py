"""A test of rates in steps of twenty updates, from zero to the largest, which prints the best one."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 8)
y = (x[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=1.0)
curve = []
for place in range(12):
    rate = place / 12
    for group in opt.param_groups:
        group["lr"] = rate
    total = 0.0
    for _ in range(20):
        rows = torch.randint(200, (20,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    curve.append((rate, total / 20))
print("suggested rate", min(curve, key=lambda pair: pair[1])[0])
