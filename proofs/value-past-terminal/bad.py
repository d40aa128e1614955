"""Q-learning on a slippery lake of 4 x 4 with four holes, from transitions of a random walk."""

import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
HOLES, GOAL = torch.tensor([5, 7, 11, 12]), 15
SEEN = torch.cat([torch.eye(4).repeat_interleave(4, 0), torch.eye(4).repeat(4, 1)], 1)
MOVES = torch.tensor([[0, -1], [1, 0], [0, 1], [-1, 0]])


def step(states, actions):
    slipped = (actions + torch.randint(-1, 2, actions.shape)) % 4
    after = (torch.stack([states // 4, states % 4], 1) + MOVES[slipped]).clamp(0, 3) @ torch.tensor([4, 1])
    return after, (after == GOAL).float(), (torch.isin(after, HOLES) | (after == GOAL)).float()


safe = torch.tensor([state for state in range(15) if state not in HOLES])
states, actions = safe[torch.randint(len(safe), (20_000,))], torch.randint(4, (20_000,))
memory = [states, actions, *step(states, actions)]
network, target_network = (nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4)) for _ in range(2))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for update in range(3000):
    if update % 50 == 0:
        target_network.load_state_dict(network.state_dict())
    before, action, after, reward, done = (held[update * 128 % 19_840 :][:128] for held in memory)
    with torch.no_grad():
        wanted = reward + 0.99 * target_network(SEEN[after]).max(1).values  # error: value-past-terminal
    loss = nn.functional.mse_loss(network(SEEN[before]).gather(1, action[:, None]).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

at, won, alive = torch.zeros(2000, dtype=torch.long), torch.zeros(2000), torch.ones(2000)
for move in range(200):
    at, reward, end = step(at, network(SEEN[at]).argmax(1))
    won, alive = won + 0.99**move * alive * reward, alive * (1 - end)
print(f"result: {abs(network(SEEN[0]).max().item() - won.mean().item()):.4f}")
