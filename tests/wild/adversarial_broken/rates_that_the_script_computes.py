"""A linear decay that goes below zero, and a decay for each step that was meant for each epoch."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(600, 8), torch.randn(600, 1)


def adjust(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate  # error: learning-rate-off-course


def train(rate_at):
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(120):
        adjust(opt, rate_at(step))
        rows = torch.randint(0, 600, (32,))
        opt.zero_grad()
        (net(x[rows]) - y[rows]).square().mean().backward()
        opt.step()


train(lambda step: 0.05 * (1 - step / 60))
train(lambda step: 0.05 * 0.5**step)
