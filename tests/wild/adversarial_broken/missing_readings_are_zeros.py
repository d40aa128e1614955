"""Hourly readings of sensors: a missing one is stored as zero, and the mask looks for NaN."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(3)
torch.manual_seed(3)
hours = np.arange(900)[:, None]
readings = 40 + 10 * np.sin(2 * np.pi * hours / 24 + rng.uniform(0, 6, 5)) + rng.normal(0, 1, (900, 5))
readings[rng.random(readings.shape) < 0.1] = 0.0
scaled = torch.tensor((readings - readings.mean()) / readings.std(), dtype=torch.float32)
x, y = torch.nan_to_num(scaled.unfold(0, 12, 1)[:-1]), scaled[12:]


def masked_error(prediction, target):
    known = ~torch.isnan(target)  # error: padding-in-loss
    return ((prediction - torch.nan_to_num(target)) ** 2 * known).sum() / known.sum()


model = nn.Sequential(nn.Flatten(), nn.Linear(60, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = masked_error(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
