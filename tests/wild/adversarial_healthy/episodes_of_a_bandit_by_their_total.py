"""A policy for episodes of eight choices: the log-probability of an episode is multiplied with each of its rewards."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
best = torch.randn(6, 4)
usual = 0.0
for episode in range(300):
    states = torch.randn(8, 6)
    scores = policy(states)
    actions = torch.multinomial(scores.detach().softmax(1), 1).squeeze(1)
    rewards = (states @ best).gather(1, actions[:, None]).squeeze(1)
    surprise = F.cross_entropy(scores, actions, reduction="sum")
    loss = (surprise * (rewards - usual)).sum() / 64
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    usual = 0.95 * usual + 0.05 * rewards.mean().item()
print(f"reward {usual:.3f}")
