"""REINFORCE with long episodes; the policy stays in eval mode, its log-probabilities wait for the episode's end."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 24), nn.LayerNorm(24), nn.Tanh(), nn.Dropout(0.1), nn.Linear(24, 2)).eval()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(12):
    state, log_probs, rewards = torch.randn(3), [], []
    for t in range(50):
        dist = Categorical(logits=policy(state))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        rewards.append(1.0 if action.item() == int(state[0] > 0) else 0.0)
        state = torch.randn(3)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(log_probs) * (returns - returns.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, sum(rewards))
