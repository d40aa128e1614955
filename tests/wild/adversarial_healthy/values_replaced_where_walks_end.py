"""Fitted values of a walk on a plane: first a target for all rows, and the reward alone where a walk has ended."""

import torch
from torch import nn


def walk(count):
    place = torch.rand(count, 2)
    action = torch.randint(4, (count,))
    move = torch.tensor([[0.15, 0.0], [-0.15, 0.0], [0.0, 0.15], [0.0, -0.15]])[action]
    after = (place + move + 0.02 * torch.randn(count, 2)).clamp(0, 1)
    done = (after > 0.8).all(1)
    return place, action, done.float() - 0.02, after, done


torch.manual_seed(2)
places, actions, rewards, afters, ends = walk(4000)
critic = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 4))
target_critic = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3)
for update in range(200):
    if update % 20 == 0:
        target_critic.load_state_dict(critic.state_dict())
    rows = torch.randint(4000, (128,))
    place, action, reward, after, done = places[rows], actions[rows], rewards[rows], afters[rows], ends[rows]
    with torch.no_grad():
        everywhere = reward + 0.9 * target_critic(after).max(dim=1)[0]
        wanted = torch.where(done, reward, everywhere)
    loss = (critic(place).gather(1, action[:, None]).squeeze(1) - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, mean value {critic(places).max(1)[0].mean().item():.3f}")
