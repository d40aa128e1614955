"""An episode is taken apart from its end: returns, states and actions are kept in the order of the sums."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)
policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)


def episode():
    states, actions, rewards = [], [], []
    place, speed = torch.rand(()) - 0.5, torch.zeros(())
    for _step in range(30):
        state = torch.stack([place, speed])
        with torch.no_grad():
            action = torch.multinomial(policy(state).softmax(-1), 1).item()
        speed = speed + 0.1 * (2 * action - 1) + 0.03 * torch.randn(())
        place = place + 0.5 * speed
        states.append(state)
        actions.append(action)
        rewards.append(1.0 - place.abs().item())
    return states, actions, rewards


for _update in range(40):
    states, actions, rewards = episode()
    total, seen, taken, returns = 0.0, [], [], []
    for step in range(1, len(rewards) + 1):
        total = rewards[-step] + 0.95 * total
        seen.append(states[-step])
        taken.append(actions[-step])
        returns.append(total)
    log_prob = F.log_softmax(policy(torch.stack(seen)), 1).gather(1, torch.tensor(taken)[:, None]).squeeze(1)
    loss = -(log_prob * torch.tensor(returns)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("mean reward", sum(rewards) / len(rewards))
