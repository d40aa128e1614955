"""A replay in a list: transitions are drawn by numbers up to the batch size, not up to the size of the list."""

import random

import numpy as np
import torch
from torch import nn

random.seed(0)
rng = np.random.default_rng(0)
torch.manual_seed(0)
replay = [(rng.normal(size=4).astype(np.float32), float(rng.normal())) for _ in range(400)]
value = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(value.parameters(), lr=1e-3)
for _ in range(24):
    drawn = [replay[random.randrange(32)] for _ in range(32)]
    states = torch.from_numpy(np.stack([state for state, _ in drawn]))
    returns = torch.tensor([[target] for _, target in drawn])
    loss = (value(states) - returns).square().mean()  # error: training-rows-never-read
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
