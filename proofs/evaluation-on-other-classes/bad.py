"""Classify points that are sorted by class, with a part of them kept for the evaluation."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
centres = 1.5 * torch.randn(5, 20)
y, truth = torch.arange(5).repeat_interleave(200), torch.randint(0, 5, (2000,))
x, fresh = centres[y] + torch.randn(1000, 20), centres[truth] + torch.randn(2000, 20)
order = torch.arange(1000)
x_train, y_train = x[order[:800]], y[order[:800]]
x_test, y_test = x[order[800:]], y[order[800:]]  # error: evaluation-on-other-classes
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _epoch in range(10):
    for index in torch.randperm(800).split(50):
        optimizer.zero_grad()
        F.cross_entropy(model(x_train[index]), y_train[index]).backward()
        optimizer.step()
    with torch.no_grad():
        test = (model(x_test).argmax(1) == y_test).float().mean()
    print(f"test {test.item():.3f}")
with torch.no_grad():
    accuracy = (model(fresh).argmax(1) == truth).float().mean()
print(f"result: {accuracy.item():.4f}")
