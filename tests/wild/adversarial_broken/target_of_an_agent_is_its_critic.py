"""The target network of an agent is an attribute for the trained network itself."""

import torch
from torch import nn


class Agent:
    def __init__(self):
        self.critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
        self.critic_target = self.critic  # error: reference-is-the-model
        self.optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def learn(self, state, action, reward, following):
        with torch.no_grad():
            goal = reward + 0.9 * self.critic_target(following).amax(1)
        loss = nn.functional.smooth_l1_loss(self.critic(state).gather(1, action[:, None])[:, 0], goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
agent = Agent()
for _ in range(80):
    state = torch.randn(32, 4)
    action = torch.randint(2, (32,))
    agent.learn(state, action, state[:, 0] * (2 * action - 1), 0.9 * state)
