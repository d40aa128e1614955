"""An actor with a critic in a room of 6 x 6: the goal is in the corner opposite to the start."""

import sys

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
GOAL, SEEN, MOVES = 35, torch.eye(36), torch.tensor([[0, -1], [1, 0], [0, 1], [-1, 0]])
actor = nn.Sequential(nn.Linear(36, 32), nn.Tanh(), nn.Linear(32, 4))
critic = nn.Sequential(nn.Linear(36, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
at, won = torch.randint(GOAL, (64,)), 0.0
for update in range(400):
    states, actions, rewards = [], [], []
    with torch.no_grad():
        for _move in range(5):
            states.append(at)
            actions.append(Categorical(logits=actor(SEEN[at])).sample())
            at = (torch.stack([at // 6, at % 6], 1) + MOVES[actions[-1]]).clamp(0, 5) @ torch.tensor([6, 1])
            rewards.append((at == GOAL).float())
            at = torch.where(at == GOAL, 0, at)
        following, returns = critic(SEEN[at]).squeeze(1), []
        for reward in reversed(rewards):
            following = reward + 0.97 * (1 - reward) * following
            returns.insert(0, following)
    seen, taken = SEEN[torch.cat(states)], torch.cat(actions)
    policy = Categorical(logits=actor(seen))
    advantage = torch.cat(returns) - critic(seen).squeeze(1)
    policy_loss = -(policy.log_prob(taken) * advantage.detach()).mean()
    loss = policy_loss + 0.5 * advantage.pow(2).mean() - 0.01 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    won += torch.stack(rewards).mean().item() / 100 if update >= 300 else 0.0
print(f"result: {won:.4f}")
