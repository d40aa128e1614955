"""A bias of zero and weights that fit the width keep the units of a ReLU alive."""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(640, 10)
classes = (points[:, 0] * points[:, 1] > 0).long()


def initialise(module):
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(module.bias)


net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 2))
net.apply(initialise)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(8):
    for rows in torch.randperm(640).split(32):
        scores = net(points[rows])
        loss = nn.functional.cross_entropy(scores, classes[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
