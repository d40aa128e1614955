"""A loaded body is unfrozen after some epochs, and is in no optimizer: it was built over the head."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 6)
y = (x[:, 0] + x[:, 1] > 0).long()


def build():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))


def run(net, optimizer, targets, epochs):
    for _ in range(epochs):
        for index in torch.randperm(300).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[index]), targets[index]).backward()
            optimizer.step()


first, net = build(), build()
run(first, torch.optim.Adam(first.parameters(), lr=1e-2), (x[:, 2] > 0).long(), 6)
net.load_state_dict(first.state_dict())
net[0].requires_grad_(False)
optimizer = torch.optim.Adam(net[2].parameters(), lr=1e-2)  # error: parameters-not-optimized
run(net, optimizer, y, 6)
net[0].requires_grad_(True)
run(net, optimizer, y, 12)
