"""Proximal updates of a policy for a continuous action: the gains are scaled with their gradient, and clipped."""

import torch
from torch import nn

torch.manual_seed(1)
policy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
spread = nn.Parameter(torch.zeros(1))
baseline = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*policy.parameters(), spread, *baseline.parameters()], lr=3e-3)


def log_density(states, actions):
    return -0.5 * ((actions - policy(states)) / spread.exp()).pow(2).sum(1) - spread.sum()


class Proximal:
    def __init__(self, clip=0.2, passes=3):
        self.clip, self.passes = clip, passes

    def gains(self, states, returns):
        gain = returns - baseline(states).flatten()
        return gain, (gain - gain.mean()) / (gain.std() + 1e-6)

    def learn(self, states, actions, returns):
        with torch.no_grad():
            before = log_density(states, actions)
        for _ in range(self.passes):
            ratio = torch.exp(log_density(states, actions) - before)
            gain, scaled = self.gains(states, returns)  # error: advantage-with-gradient
            surrogate = torch.min(ratio * scaled, ratio.clamp(1 - self.clip, 1 + self.clip) * scaled)
            loss = -surrogate.mean() + 0.5 * gain.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()


learner = Proximal()
for _ in range(40):
    states = torch.randn(64, 3)
    with torch.no_grad():
        actions = policy(states) + spread.exp() * torch.randn(64, 1)
    returns = -(actions.flatten() - states.sum(1)).abs()
    loss = learner.learn(states, actions, returns)
print(f"loss {loss:.3f}")
