"""A policy keeps a dot near the middle; the returns are summed from the last reward on and appended."""

import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        self.log_probs, self.rewards = [], []

    def forward(self, state):
        return Categorical(logits=self.net(state))


torch.manual_seed(0)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)


def finish_episode(gamma=0.97):
    total, returns = 0.0, []
    for reward in policy.rewards[::-1]:
        total = reward + gamma * total
        returns.append(total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)  # error: returns-in-wrong-order
    losses = [-log_prob * gain for log_prob, gain in zip(policy.log_probs, returns, strict=True)]
    optimizer.zero_grad()
    torch.stack(losses).sum().backward()
    optimizer.step()
    del policy.rewards[:], policy.log_probs[:]


for _episode in range(40):
    place, speed = torch.rand(()) - 0.5, torch.zeros(())
    for _step in range(40):
        choice = policy(torch.stack([place, speed]))
        action = choice.sample()
        policy.log_probs.append(choice.log_prob(action))
        speed = speed + 0.1 * (2 * action - 1) + 0.03 * torch.randn(())
        place = place + 0.5 * speed
        policy.rewards.append(1.0 - place.abs().item())
        if place.abs() > 1:
            break
    length = len(policy.rewards)
    finish_episode()
print("steps", length)
