"""Returns in the order of their sums meet the log-probabilities from the last one to the first."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(3)
policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
for _episode in range(40):
    log_probs, rewards = [], []
    place, speed = torch.rand(()) - 0.5, torch.zeros(())
    for _step in range(40):
        choice = Categorical(logits=policy(torch.stack([place, speed])))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        speed = speed + 0.1 * (2 * action - 1) + 0.03 * torch.randn(())
        place = place + 0.5 * speed
        rewards.append(1.0)
        if place.abs() > 1:
            break
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.97 * total
        returns.append(total)
    loss = 0
    for log_prob, gain in zip(reversed(log_probs), returns, strict=True):
        loss = loss - log_prob * gain
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("steps", len(rewards))
