"""Ratios of probabilities by division: the critic is called for the advantage, and again for its own loss."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)
actor = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3))
critic = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)


def value_loss(states, returns):
    return F.mse_loss(critic(states).squeeze(-1), returns)


def update(states, actions, before, returns):
    now = actor(states).softmax(-1).gather(1, actions[:, None]).squeeze(1)
    advantage = (returns - critic(states).squeeze(-1)).clamp(-3, 3)  # error: advantage-with-gradient
    policy_loss = -torch.min(now / before * advantage, (now / before).clamp(0.8, 1.2) * advantage).mean()
    loss = policy_loss + 0.5 * value_loss(states, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(60):
    states = torch.randn(64, 4)
    with torch.no_grad():
        chances = actor(states).softmax(-1)
        actions = torch.multinomial(chances, 1).squeeze(1)
        before = chances.gather(1, actions[:, None]).squeeze(1)
    returns = (actions == states[:, :3].argmax(1)).float() * 2 - 0.5
    for _ in range(2):
        loss = update(states, actions, before, returns)
print(f"{loss:.3f}")
