"""A bias far below zero ends every unit of a ReLU before the first step, and the layers before it get no gradient."""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(640, 10)
classes = (points[:, 0] * points[:, 1] > 0).long()


def initialise(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.1)
        nn.init.constant_(module.bias, -5.0)


net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 2))
net.apply(initialise)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(8):
    for rows in torch.randperm(640).split(32):
        scores = net(points[rows])  # error: output-ignores-input
        loss = nn.functional.cross_entropy(scores, classes[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
