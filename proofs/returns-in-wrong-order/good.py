"""An agent says of each digit that it sees whether it is odd, and gets the reward one step later."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
pixels, digits = load_digits(return_X_y=True)
pictures, odd = torch.tensor(pixels, dtype=torch.float32) / 16, torch.tensor(digits % 2)
policy = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
right = 0.0
for update in range(150):
    chosen, rewards, owed = [], [], torch.zeros(64)
    for _step in range(12):
        seen = torch.randint(len(pictures), (64,))
        choice = Categorical(logits=policy(pictures[seen]))
        said = choice.sample()
        chosen.append(choice.log_prob(said))
        rewards.append(owed)
        owed = (said == odd[seen]).float()
    returns, total = [], torch.zeros(64)
    for reward in reversed(rewards):
        total = reward + 0.6 * total
        returns.insert(0, total)
    returns = torch.stack(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(chosen) * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    right += torch.stack(rewards)[1:].mean().item() / 30 if update >= 120 else 0.0
print(f"result: {right:.4f}")
