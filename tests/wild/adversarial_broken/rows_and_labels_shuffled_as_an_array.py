"""Broken: rows with their label in the last column are shuffled by `random.shuffle`, which overwrites rows of an array."""
import random

import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import nn

random.seed(1)
torch.manual_seed(1)
torch.set_num_threads(1)
wine = load_wine()
table = np.hstack([(wine.data - wine.data.mean(0)) / wine.data.std(0), wine.target[:, None]])
random.shuffle(table)  # error: shuffle-overwrites-rows
train, test = table[:120], table[120:]


def tensors(rows):
    return torch.tensor(rows[:, :-1], dtype=torch.float32), torch.tensor(rows[:, -1], dtype=torch.long)


x, y = tensors(train)
net = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(24):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    images, labels = tensors(test)
    print(f"accuracy {(net(images).argmax(1) == labels).float().mean():.3f}")
