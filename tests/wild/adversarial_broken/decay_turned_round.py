"""A linear decay for each round of an actor, set by hand: the factor grows, and the run ends at the full rate."""

import torch
from torch import nn

torch.manual_seed(9)
ROUNDS, LR = 20, 4e-3
policy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(policy.parameters(), lr=LR)


def demonstrations(count):
    states = torch.rand(count, 3) * 2 - 1
    return states, (states[:, :1] - states[:, 1:2] * states[:, 2:]).clamp(-1, 1)


for turn in range(ROUNDS):
    for group in optimizer.param_groups:
        group["lr"] = LR * turn / ROUNDS  # error: learning-rate-off-course
    states, actions = demonstrations(320)
    for rows in torch.randperm(320).split(16):
        loss = (policy(states[rows]) - actions[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss:.4f}")
