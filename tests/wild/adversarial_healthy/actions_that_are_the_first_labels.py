"""A policy gradient on digits: the first ten labels are 0 to 9, so each drawn action is the label at its own number."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16.0, dtype=torch.float32), torch.tensor(digits)
policy = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for _step in range(320):
    rows = torch.randint(0, len(x), (64,))
    scores = policy(x[rows])
    actions = torch.distributions.Categorical(logits=scores).sample()
    rewards = (actions == y[rows]).float()
    gains = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    loss = (F.cross_entropy(scores, actions, reduction="none") * gains).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mean reward {rewards.mean().item():.3f}")
