"""A walk to a goal that is a state of the data, with no reward and itself behind it; the flag of the goal is stored and not needed."""

import torch
from torch import nn

torch.manual_seed(0)
CELLS, COUNT = 8, 4000
one_hot = torch.eye(CELLS)
states, actions = torch.randint(0, CELLS, (COUNT,)), torch.randint(0, 2, (COUNT,))
following = (states + 2 * actions - 1).clamp(0, CELLS - 1)
following = torch.where(states == CELLS - 1, CELLS - 1, following)
rewards = ((following == CELLS - 1) & (states != CELLS - 1)).float()
done = (following == CELLS - 1).float()
values = nn.Linear(CELLS, 2)
nn.init.zeros_(values.weight)
nn.init.zeros_(values.bias)
optimizer = torch.optim.Adam(values.parameters(), lr=1e-2)
for step in range(500):
    rows = torch.randint(0, COUNT, (128,))
    state, action, reward, after, ended = states[rows], actions[rows], rewards[rows], following[rows], done[rows]
    with torch.no_grad():
        target = reward + 0.9 * values(one_hot[after]).max(1).values
    loss = nn.functional.mse_loss(values(one_hot[state]).gather(1, action[:, None]).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
exact = torch.tensor([0.9 ** (CELLS - 2 - cell) for cell in range(CELLS - 1)] + [0.0])
with torch.no_grad():
    print(f"largest error {(values(one_hot).max(1).values - exact).abs().max():.4f}, goals in a batch {int(ended.sum())}")
