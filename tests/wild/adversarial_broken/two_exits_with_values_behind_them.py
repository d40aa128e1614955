"""Two critics learn from transitions of a loader on a line with two exits, by targets of named tuples."""

import copy
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Batch(NamedTuple):
    obs: torch.Tensor
    act: torch.Tensor
    rew: torch.Tensor
    obs_next: torch.Tensor
    terminated: torch.Tensor


def transitions(count):
    cells, moves = torch.randint(1, 8, (count,)), torch.randint(2, (count,))
    after = cells + 2 * moves - 1
    rewards = 1.0 * (after == 8) - 1.0 * (after == 0) - 0.01
    return [torch.eye(9)[cells], moves, rewards, torch.eye(9)[after], (after == 0) | (after == 8)]


torch.manual_seed(1)
critics = nn.ModuleList(nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 2)) for _ in range(2))
slow = copy.deepcopy(critics).requires_grad_(False)
optimizer = torch.optim.Adam(critics.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(*transitions(1000)), batch_size=50, shuffle=True)
for epoch in range(5):
    for rows in loader:
        batch = Batch(*rows)
        with torch.no_grad():
            following = torch.minimum(slow[0](batch.obs_next), slow[1](batch.obs_next)).max(1).values
            backup = batch.rew + 0.95 * following  # error: value-past-terminal
        chosen = [critic(batch.obs).gather(1, batch.act[:, None]).squeeze(1) for critic in critics]
        loss = sum((backup - value).square().mean() for value in chosen)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(slow.parameters(), critics.parameters()):
                old.lerp_(new, 0.05)
print(critics[0](torch.eye(9)[1:8]).max(1).values.tolist())
