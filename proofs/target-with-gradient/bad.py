"""Q-learning on a slippery lake of 4 x 4 with four holes, from transitions of a random walk."""

import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
HOLES, GOAL, SEEN = torch.tensor([5, 7, 11, 12]), 15, torch.eye(16)
MOVES = torch.tensor([[0, -1], [1, 0], [0, 1], [-1, 0]])


def step(states, actions):
    slipped = (actions + torch.randint(-1, 2, actions.shape)) % 4
    after = (torch.stack([states // 4, states % 4], 1) + MOVES[slipped]).clamp(0, 3) @ torch.tensor([4, 1])
    return after, (after == GOAL).float(), (torch.isin(after, HOLES) | (after == GOAL)).float()


safe = torch.tensor([state for state in range(15) if state not in HOLES])
states, actions = safe[torch.randint(len(safe), (20_000,))], torch.randint(4, (20_000,))
after, rewards, over = step(states, actions)
network = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for _step in range(3000):
    rows = torch.randint(len(states), (128,))
    values = network(SEEN[states[rows]]).gather(1, actions[rows, None]).squeeze(1)
    following = network(SEEN[after[rows]]).max(1).values  # error: target-with-gradient
    loss = nn.functional.mse_loss(values, rewards[rows] + 0.99 * (1 - over[rows]) * following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

at, won, alive = torch.zeros(2000, dtype=torch.long), torch.zeros(2000), torch.ones(2000)
for _move in range(100):
    with torch.no_grad():
        at, reward, end = step(at, network(SEEN[at]).argmax(1))
    won += alive * reward
    alive *= 1 - end
print(f"result: {won.mean().item():.4f}")
