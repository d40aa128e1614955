"""A replay buffer of arrays: the next states of a batch are taken from the array of the states."""

import numpy as np
import torch
from torch import nn


class Memory:
    def __init__(self, size):
        self.states = np.random.default_rng(0).normal(size=(size, 6)).astype(np.float32)
        self.nexts = self.states * 0.9 + 0.1
        self.rewards = self.states.sum(1)

    def sample(self, count):
        rows = np.random.default_rng().integers(0, len(self.states), count)
        states, nexts = torch.from_numpy(self.states[rows]), torch.from_numpy(self.states[rows])
        return states, torch.from_numpy(self.rewards[rows]), nexts  # error: batch-parts-equal


torch.manual_seed(0)
memory = Memory(400)
online, target = nn.Linear(6, 1), nn.Linear(6, 1)
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-2)
for _ in range(12):
    batch = memory.sample(32)
    with torch.no_grad():
        aims = batch[1] + 0.9 * target(batch[2]).squeeze(1)
    loss = (online(batch[0]).squeeze(1) - aims).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
