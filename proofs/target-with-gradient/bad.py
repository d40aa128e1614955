"""Q-learning on a slippery lake, from transitions of a random walk."""

import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
HOLES = torch.zeros(16, dtype=torch.bool)
HOLES[[5, 7, 11, 12]] = True
GOAL = 15
MOVES = torch.tensor([[0, -1], [1, 0], [0, 1], [-1, 0]])


def step(states, actions):
    slipped = (actions + torch.randint(-1, 2, actions.shape)) % 4
    place = torch.stack([states // 4, states % 4], 1) + MOVES[slipped]
    after = place.clamp(0, 3) @ torch.tensor([4, 1])
    return after, (after == GOAL).float(), (HOLES[after] | (after == GOAL)).float()


def seen(states):
    return nn.functional.one_hot(states, 16).float()


safe = torch.tensor([s for s in range(15) if not HOLES[s]])
states, actions = safe[torch.randint(len(safe), (20_000,))], torch.randint(4, (20_000,))
after, rewards, over = step(states, actions)

network = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for _step in range(3000):
    rows = torch.randint(len(states), (128,))
    values = network(seen(states[rows])).gather(1, actions[rows, None]).squeeze(1)
    following = network(seen(after[rows])).max(1).values  # error: target-with-gradient
    loss = nn.functional.mse_loss(values, rewards[rows] + 0.99 * (1 - over[rows]) * following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

at, won, alive = torch.zeros(2000, dtype=torch.long), torch.zeros(2000), torch.ones(2000)
for _move in range(100):
    with torch.no_grad():
        at, reward, end = step(at, network(seen(at)).argmax(1))
    won += alive * reward
    alive *= 1 - end
print(f"result: {won.mean().item():.4f}")
