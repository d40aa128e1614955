"""An episode at a time: log-probabilities and values are collected in lists, and the losses of the steps are stacked."""

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(3)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 24)
        self.action_head = nn.Linear(24, 3)
        self.value_head = nn.Linear(24, 1)

    def forward(self, state):
        x = torch.relu(self.body(state))
        return Categorical(logits=self.action_head(x)), self.value_head(x)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=5e-3)
eps = 1e-6


def episode():
    place, speed = torch.rand(()) * 2 - 1, torch.zeros(())
    saved, rewards = [], []
    for _ in range(20):
        policy, value = agent(torch.stack([place, speed]))
        action = policy.sample()
        saved.append((policy.log_prob(action), value))
        speed = 0.9 * speed + 0.2 * (action - 1)
        place = place + 0.3 * speed
        rewards.append(-place.abs().item())
    return saved, rewards


def finish_episode(saved, rewards):
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_losses, value_losses = [], []
    for (log_prob, value), reward in zip(saved, returns, strict=True):
        advantage = reward - value.squeeze(0)  # error: advantage-with-gradient
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([reward])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


for number in range(40):
    loss = finish_episode(*episode())
print(f"loss {loss:.3f}")
