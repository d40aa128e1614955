"""Each task, each round of new targets and each stage has an optimizer, and a function goes through its samples."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 6)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3))


def through(samples, targets, optimizer):
    for rows in torch.randperm(len(samples)).split(40):
        optimizer.zero_grad()
        F.mse_loss(model(samples[rows]), targets[rows]).backward()
        optimizer.step()


def stage_of(number):
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        F.mse_loss(model(x[rows])[:, number], x[rows, number]).backward()
        optimizer.step()


for task in range(3):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    through(x * (task + 1), x[:, task : task + 3], optimizer)
for _ in range(4):
    goals = x[:, :3] + 0.9 * model(x.roll(1, 0)).detach()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    through(x, goals, optimizer)
for stage in range(3):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    stage_of(stage)
print(F.mse_loss(model(x), x[:, :3]).item())
