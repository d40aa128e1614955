"""One network, a new optimizer for each of four tasks and for each of three rounds of labels."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
for task in range(4):
    x = torch.randn(256, 6) + task
    y = (x[:, task] > task).long()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(3):
        for rows in torch.randperm(256).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
    print(task, round(loss.item(), 4))

for labels in range(3):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(20):
        rows = torch.randint(0, 80 * (labels + 1), (32,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[rows % 256]), y[rows % 256]).backward()
        optimizer.step()
