"""A policy with a baseline, in a class: the bonus of the entropy has the wrong sign."""

import torch
from torch import nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, x):
        hidden = self.body(x)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


torch.manual_seed(0)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
best = torch.randn(4, 3)
for update in range(60):
    states = torch.randn(64, 4)
    policy, value = agent(states)
    action = policy.sample()
    reward = (states @ best).gather(1, action[:, None]).squeeze(1) + 0.3 * torch.randn(64)
    advantage = reward - value.detach()
    actor_loss = -(policy.log_prob(action) * advantage).mean()
    critic_loss = nn.functional.mse_loss(value, reward)
    loss = actor_loss + 0.5 * critic_loss + 0.02 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()  # error: loss-maximised
    optimizer.step()
    if update % 20 == 19:
        print(update, round(reward.mean().item(), 3), round(policy.entropy().mean().item(), 3))
