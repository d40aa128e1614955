"""Classify ten clouds of points, with or without a ReLU after the last layer."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

centres = 1.1 * torch.randn(10, 20)
y = torch.randint(10, (2000,))
x = centres[y] + torch.randn(2000, 20)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for _epoch in range(10):
    for rows in torch.randperm(1000).split(50):
        optimizer.zero_grad()
        logits = model(x[rows])
        loss = criterion(logits, y[rows])
        loss.backward()
        optimizer.step()

with torch.no_grad():
    accuracy = (model(x[1000:]).argmax(1) == y[1000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
