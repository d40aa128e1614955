"""Inputs and targets are drawn by two permutations, in a function."""

import torch
from torch import nn


def run(steps=8):
    torch.manual_seed(3)
    points = torch.randn(300, 4)
    kinds = (points.sum(1) > 0).long() + 2 * (points[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        first = torch.randperm(len(points))[:60]
        second = torch.randperm(len(points))[:60]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points[first]), kinds[second]).backward()  # error: targets-of-other-samples
        optimizer.step()


run()
