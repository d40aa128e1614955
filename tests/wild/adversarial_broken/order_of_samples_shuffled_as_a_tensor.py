"""Broken: a class shuffles a tensor of indices in place before each epoch, and half of those that are left are lost."""
from random import shuffle

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)


class Batches:
    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size
        self.order = torch.arange(len(x))

    def __iter__(self):
        shuffle(self.order)  # error: shuffle-overwrites-rows
        for start in range(0, len(self.order), self.size):
            rows = self.order[start : start + self.size]
            yield self.x[rows], self.y[rows]


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
batches = Batches(x[:600], y[:600], 50)
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(6):
    for inputs, labels in batches:
        loss = nn.functional.cross_entropy(net(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
