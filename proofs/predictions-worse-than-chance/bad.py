"""Classify points with classes that are counted from 1 in the file."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
centres = 1.5 * torch.randn(5, 20)
x, number = torch.randn(1400, 20), torch.randint(1, 6, (1400,))
x += centres[number - 1]
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
labels = number % 5
for _epoch in range(8):
    for index in torch.randperm(800).split(50):
        optimizer.zero_grad()
        F.cross_entropy(model(x[index]), labels[index]).backward()
        optimizer.step()
with torch.no_grad():
    accuracy = (model(x[800:]).argmax(1) == number[800:] - 1).float().mean()  # error: predictions-worse-than-chance
print(f"result: {accuracy.item():.4f}")
