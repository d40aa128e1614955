"""Classify three gestures from a sensor that writes every reading into the same buffer."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
rng = np.random.default_rng(seed)
shapes = rng.normal(size=(3, 24)).astype(np.float32)


def record(count):
    reading = np.empty(24, dtype=np.float32)
    readings, gestures = [], rng.integers(0, 3, count)
    for gesture in gestures:
        np.add(shapes[gesture], rng.normal(size=24), out=reading, casting="unsafe")
        readings.append(torch.from_numpy(reading))
    return torch.stack(readings), torch.from_numpy(gestures)


x, y = record(1200)
x_test = torch.from_numpy(shapes[:, None] + rng.normal(size=(3, 200, 24)).astype(np.float32)).flatten(0, 1)
y_test = torch.arange(3).repeat_interleave(200)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)  # error: samples-all-equal
model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _epoch in range(5):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(1) == y_test).float().mean():.4f}")
