"""Healthy: several passes with equal losses in a step: gradients of one loss in two parts, and two steps of one batch."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.05)
x = torch.randn(256, 5)
y = x[:, :2].sum(1, keepdim=True)
for step in range(20):
    rows = torch.randint(0, 256, (32,))
    optimizer.zero_grad()
    for part in (net[0], net[2]):  # in two parts, to measure each
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        loss.backward(inputs=list(part.parameters()))
    optimizer.step()
print(f"parts {loss.item():.3f}")

for step in range(20):  # two steps on each batch
    rows = torch.randint(0, 256, (32,))
    for again in range(2):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
print(f"twice {loss.item():.3f}")

slow = copy.deepcopy(net)
for step in range(20):  # the sharpness of the loss: the second pass is at other weights
    rows = torch.randint(0, 256, (32,))
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
    with torch.no_grad():
        moves = [0.01 * p.grad / (p.grad.norm() + 1e-9) for p in net.parameters()]
        for p, move in zip(net.parameters(), moves):
            p.add_(move)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    loss.backward()
    with torch.no_grad():
        for p, move in zip(net.parameters(), moves):
            p.sub_(move)
    optimizer.step()
print(f"sharp {loss.item():.3f}")

drop = nn.Sequential(nn.Linear(5, 32), nn.Dropout(0.3), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(drop.parameters(), 1e-2)
for step in range(20):  # four draws of the noise for one batch
    rows = torch.randint(0, 256, (32,))
    optimizer.zero_grad()
    for draw in range(4):
        loss = nn.functional.mse_loss(drop(x[rows]), y[rows]) / 4
        loss.backward()
    optimizer.step()
print(f"draws {4 * loss.item():.3f}")
