"""Healthy: sums that are divided by the distance of reports, in loops that end at the first one."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), 1e-3)
w = torch.randn(8, 3)


def train(steps_per_report):
    total = 0.0
    step = 0
    while True:
        x = torch.randn(32, 8)
        y = (x @ w).argmax(1)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        step += 1
        if step % steps_per_report == 0:
            return total / steps_per_report


for r in range(5):
    print(r, train(20))
total = 0.0
every = 25
for step in range(1, 200):
    x = torch.randn(32, 8)
    y = (x @ w).argmax(1)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss.item()
    if step % every == 0:
        mean = total / every
        print(mean)
        if mean < 10:
            break
