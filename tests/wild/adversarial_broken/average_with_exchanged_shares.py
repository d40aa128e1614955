"""A target network in a class: `tau` and `1 - tau` are exchanged, and it follows at once."""

import copy

import torch
from torch import nn


class Agent:
    def __init__(self, tau=0.01):
        self.tau = tau
        self.critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
        self.target = copy.deepcopy(self.critic)
        self.optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def follow(self):
        pairs = self.target.parameters(), self.critic.parameters()
        for slow, fast in zip(*pairs, strict=True):
            slow.data.copy_((1 - self.tau) * fast.data + self.tau * slow.data)

    def learn(self, state, action, reward, following):
        with torch.no_grad():
            goal = reward + 0.9 * self.target(following).amax(1)  # error: average-with-wrong-shares
        loss = nn.functional.smooth_l1_loss(self.critic(state).gather(1, action[:, None])[:, 0], goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.follow()


torch.manual_seed(0)
agent = Agent()
for _ in range(80):
    state = torch.randn(32, 4)
    action = torch.randint(2, (32,))
    agent.learn(state, action, state[:, 0] * (2 * action - 1), 0.9 * state)
