"""PPO-like value loss: values (N, 1) against returns (N,), Huber."""
import warnings

import torch
import torch.nn.functional as F
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)


def discounted(rewards, gamma=0.95):
    returns, running = [], 0.0
    for r in reversed(rewards.tolist()):
        running = r + gamma * running
        returns.insert(0, running)
    return torch.tensor(returns)


for update in range(20):
    states = torch.randn(40, 3)
    returns = discounted(torch.rand(40))
    value_loss = F.huber_loss(critic(states), returns)  # error: broadcast-target
    opt.zero_grad()
    value_loss.backward()
    opt.step()
print(value_loss.item())
