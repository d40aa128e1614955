"""Distil a large network, trained on all samples, into a small one that has 60 labels and many inputs without."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

rule = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 4)).requires_grad_(False)
x = torch.randn(6000, 12)
y = (4 * rule(x)).argmax(1)


def network(width):
    return nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))


def train(model, loss, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _epoch in range(epochs):
        for index in torch.randperm(4000).split(100):
            optimizer.zero_grad()
            loss(model, index).backward()
            optimizer.step()


def distilled(model, index):
    with torch.no_grad():
        soft = teacher(x[index]).softmax(1)
    return F.cross_entropy(model(x[index]), soft) + F.cross_entropy(model(x[:60]), y[:60])


teacher, student = network(96), network(32)
train(teacher, lambda model, index: F.cross_entropy(model(x[index]), y[index]), 12)
train(student, distilled, 10)
print(f"result: {(student(x[4000:]).argmax(1) == y[4000:]).float().mean():.4f}")
