"""Healthy: lists, arrays of one dimension, records of objects, rows by NumPy, and indices are shuffled in place."""
import random
from collections import deque
from random import shuffle

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
torch.set_num_threads(1)
digits = load_digits()

rows = np.column_stack([digits.data / 16, digits.target])
np.random.shuffle(rows)
np.random.default_rng(0).shuffle(rows)
order = np.arange(1200)
random.shuffle(order)
objects = np.empty(9, dtype=object)
objects[:] = [[i] for i in range(9)]
random.shuffle(objects)
queue = deque(range(50))
shuffle(queue)
numbers = np.stack([1, 2, 3, 4])
shuffle(numbers)
copies = np.ones((20, 3))
random.shuffle(copies)

x, y = torch.tensor(rows[:, :64], dtype=torch.float32), torch.tensor(rows[:, 64]).long()
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
batches = list(torch.from_numpy(order).split(64))
for epoch in range(3):
    random.shuffle(batches)
    for batch in batches:
        loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
